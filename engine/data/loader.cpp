#include "engine/data/loader.h"

#include <algorithm>
#include <numeric>

#include "engine/base/check.h"
#include "engine/base/random.h"
#include "engine/base/text.h"

namespace troupe::engine::data {
namespace {

// Fisher-Yates with counter-based draws: the order of an epoch needs nothing but the seed and its number.
std::vector<std::uint32_t> permutation(std::size_t size, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t i = size; i > 1; --i) std::swap(order[i - 1], order[uniform_below(i, seed, epoch, i)]);
  return order;
}

Json file_json(const FilePrint& file) {
  Json out;
  // The name alone: a moved folder is the same data, and checkpoints of equal runs have equal bytes.
  out.set("name", file.path.substr(file.path.find_last_of('/') + 1)), out.set("bytes", file.bytes), out.set("xxh3", file.xxh3);
  return out;
}

tl::unexpected<Error> refused(std::string what) { return fail(Errc::bad_input, cat("the run cannot go on where it stopped: ", what)); }

Result<> same_files(const std::vector<FilePrint>& files, const Json& state) {
  const auto* stored = state.find("files");
  if (!stored || !stored->is_array()) return refused("its checkpoint does not say which data it had read (\"files\")");
  if (stored->array().size() != files.size())
    return refused(cat("it had ", stored->array().size(), " data files, now there are ", files.size()));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto hash = get_string(stored->array()[i], "xxh3", "the checkpoint's data state");
    if (!hash) return fail(hash.error());
    if (*hash != files[i].xxh3)
      return refused(cat("the data file ", files[i].path, " has changed since (", files[i].bytes, " bytes, XXH3 ", files[i].xxh3,
                         "; it had ", *hash, "); bring the old content back, or start a new run in another output folder"));
  }
  return {};
}

// The order depends on these; with another value the position would mean other examples.
Result<> same_order(const Order& order, const Json& state) {
  const auto size = get_integer(state, "examples", "the checkpoint's data state");
  const auto shuffle = get_bool(state, "shuffle", "the checkpoint's data state");
  const auto seed = get_string(state, "seed", "the checkpoint's data state");
  if (!size) return fail(size.error());
  if (!shuffle) return fail(shuffle.error());
  if (!seed) return fail(seed.error());
  if (*size != static_cast<std::int64_t>(order.size()))
    return refused(
        cat("it trained on ", *size, " examples, now ", order.size(), " are used: the data options or the maximum length have changed"));
  if (*shuffle != order.options().shuffle) return refused(cat("data.shuffle was ", *shuffle, ", now it is ", order.options().shuffle));
  if (*shuffle && *seed != std::to_string(order.options().seed))
    return refused(cat("the seed of the data's order was ", *seed, ", now it is ", order.options().seed));
  return {};
}

void add(const SftExample& example, std::uint64_t id, Experience& out) {
  out.append(example.ids, example.weights);
  out.sample_id.push_back(id);
}

}  // namespace

Order::Order(std::size_t size, LoaderOptions options) : size_(size), options_(options) {
  check(size > 0 && size <= UINT32_MAX, "Order: needs 1 to 2^32-1 examples");
  check(options.batch_size > 0 && options.epochs >= 0, "Order: batch_size >= 1, epochs >= 0");
  move_to(0, 0);
}

std::optional<Order::Draw> Order::next() {
  if (position_ == size_) move_to(epoch_ + 1, 0);
  if (options_.epochs > 0 && epoch_ >= static_cast<std::uint64_t>(options_.epochs)) return std::nullopt;
  const std::size_t index = permutation_.empty() ? position_ : permutation_[position_];
  ++position_;
  return Draw{index, epoch_ * size_ + index};
}

std::vector<Order::Draw> Order::next_batch() {
  std::vector<Draw> batch;
  while (static_cast<std::int64_t>(batch.size()) < options_.batch_size) {
    const auto draw = next();
    if (!draw) break;
    batch.push_back(*draw);
  }
  return batch;
}

std::int64_t Order::batches() const {
  return (static_cast<std::int64_t>(size_) * options_.epochs + options_.batch_size - 1) / options_.batch_size;
}

void Order::move_to(std::uint64_t epoch, std::size_t position) {
  check(position <= size_, "Order: a position beyond the data");
  if (options_.shuffle && (permutation_.empty() || epoch != epoch_)) permutation_ = permutation(size_, options_.seed, epoch);
  epoch_ = epoch, position_ = position;
}

Json order_state(const Order& order, const std::vector<FilePrint>& files) {
  Json state;
  state.set("epoch", order.epoch()), state.set("position", static_cast<std::uint64_t>(order.position()));
  state.set("examples", static_cast<std::uint64_t>(order.size())), state.set("shuffle", order.options().shuffle);
  state.set("seed", std::to_string(order.options().seed));  // as text: a seed may have 64 bits
  Json::Array list;
  for (const auto& file : files) list.push_back(file_json(file));
  state.set("files", std::move(list));
  return state;
}

Result<> restore_order(Order& order, const std::vector<FilePrint>& files, const Json& state) {
  if (auto ok = same_files(files, state); !ok) return ok;
  if (auto ok = same_order(order, state); !ok) return ok;
  const auto epoch = get_integer(state, "epoch", "the checkpoint's data state"),
             position = get_integer(state, "position", "the checkpoint's data state");
  if (!epoch) return fail(epoch.error());
  if (!position) return fail(position.error());
  if (*epoch < 0 || *position < 0 || *position > static_cast<std::int64_t>(order.size()))
    return refused(cat("its data state names position ", *position, " of epoch ", *epoch, ", which is not there"));
  order.move_to(static_cast<std::uint64_t>(*epoch), static_cast<std::size_t>(*position));
  return {};
}

Experience to_experience(const Batch<SftExample>& batch) {
  Experience out;
  for (std::size_t i = 0; i < batch.examples.size(); ++i) add(*batch.examples[i], batch.ids[i], out);
  for (const auto weight : out.mask) out.count += weight;
  return out;
}

Experience to_experience(const Batch<PairExample>& batch) {
  Experience out;
  out.unit = 2, out.count = static_cast<double>(batch.examples.size());
  for (std::size_t i = 0; i < batch.examples.size(); ++i) {
    add(batch.examples[i]->chosen, 2 * batch.ids[i], out);
    add(batch.examples[i]->rejected, 2 * batch.ids[i] + 1, out);
  }
  return out;
}

Experience to_scored_pairs(const Batch<PairExample>& batch) {
  Experience out = to_experience(batch);
  std::fill(out.mask.begin(), out.mask.end(), 0.0f);
  for (std::size_t n = 0; n + 1 < out.offsets.size(); ++n) out.mask[static_cast<std::size_t>(out.offsets[n + 1]) - 1] = 1;
  const auto margins = std::any_of(batch.examples.begin(), batch.examples.end(), [](const auto* pair) { return pair->margin.has_value(); });
  out.label.clear();
  for (std::size_t i = 0; i < batch.examples.size() && margins; ++i) {
    out.label.push_back(batch.examples[i]->margin.value_or(0.0f));
    out.label.push_back(0);
  }
  return out;
}

Experience to_experience(const Batch<StepExample>& batch) {
  Experience out;
  for (std::size_t i = 0; i < batch.examples.size(); ++i) {
    const auto& example = *batch.examples[i];
    std::vector<float> judged;
    for (const auto step : example.classes) judged.push_back(step >= 0 ? 1.0f : 0.0f), out.count += step >= 0;
    out.append(example.ids, judged);
    out.classes.insert(out.classes.end(), example.classes.begin(), example.classes.end());
    out.sample_id.push_back(batch.ids[i]);
  }
  return out;
}

}  // namespace troupe::engine::data
