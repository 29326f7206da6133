#include "engine/data/loader/order.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/data/loader/resume.h"

namespace troupe::engine::data {
namespace {

constexpr const char* where = "the checkpoint's data state";

}  // namespace

std::optional<std::size_t> next_source(const std::vector<double>& weights,
                                       const std::vector<std::uint64_t>& drawn,
                                       const std::vector<bool>& open) {
  std::optional<std::size_t> best;
  double least = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const double after = (static_cast<double>(drawn[k]) + 0.5) / weights[k];
    if (open[k] && (!best || after < least)) best = k, least = after;
  }
  return best;
}

Order::Order(std::vector<Part> parts, LoaderOptions options) : options_(options) {
  check(options.batch_size > 0 && options.epochs >= 0, "Order: batch_size >= 1, epochs >= 0");
  for (auto& part : parts) {
    check(part.size > 0 && part.size <= UINT32_MAX && part.weight > 0 && part.epochs >= 0,
          "Order: needs 1 to 2^32-1 examples");
    sources_.push_back({.part = part, .offset = size_});
    size_ += part.size;
  }
  check(!sources_.empty(), "Order: needs a source");
  for (std::size_t k = 0; k < sources_.size(); ++k) begin(k, 0, 0);
}

bool Order::is_open(const Source& source) const {
  return source.part.epochs == 0 ||
         source.drawn() < static_cast<std::uint64_t>(source.part.epochs) * source.part.size;
}

std::optional<std::uint64_t> Order::limit() const {
  std::uint64_t all = 0;
  bool endless = false;
  for (const auto& source : sources_) {
    endless = endless || source.part.epochs == 0;
    all += static_cast<std::uint64_t>(source.part.epochs) * source.part.size;
  }
  const auto passes = static_cast<std::uint64_t>(options_.epochs) * size_;
  if (endless && passes == 0) return std::nullopt;
  return endless ? passes : passes == 0 ? all : std::min(all, passes);
}

std::optional<Order::Draw> Order::next() {
  std::vector<double> weights;
  std::vector<std::uint64_t> drawn;
  std::vector<bool> open;
  std::uint64_t all = 0;
  for (const auto& source : sources_) {
    weights.push_back(source.part.weight), drawn.push_back(source.drawn()),
        open.push_back(is_open(source));
    all += source.drawn();
  }
  const auto end = limit();
  const auto chosen = end && all >= *end ? std::nullopt : next_source(weights, drawn, open);
  if (!chosen) return std::nullopt;
  auto& source = sources_[*chosen];
  if (source.position == source.part.size) begin(*chosen, source.epoch + 1, 0);
  const std::size_t index =
      source.offset +
      (source.permutation.empty() ? source.position : source.permutation[source.position]);
  ++source.position;
  return Draw{index, source.epoch * size_ + index};
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
  return (static_cast<std::int64_t>(limit().value_or(0)) + options_.batch_size - 1) /
         options_.batch_size;
}

void Order::begin(std::size_t part, std::uint64_t epoch, std::size_t position) {
  auto& source = sources_[part];
  if (options_.shuffle && (source.permutation.empty() || epoch != source.epoch))
    source.permutation = permutation(source.part.size, options_.seed, order_stream(part, epoch));
  source.epoch = epoch, source.position = position;
}

Json Order::place() const {
  Json::Array parts;
  for (const auto& source : sources_) {
    Json place;
    if (sources_.size() > 1)
      place.set("size", static_cast<std::uint64_t>(source.part.size))
          .set("weight", source.part.weight)
          .set("epochs", source.part.epochs);
    place.set("epoch", source.epoch),
        place.set("position", static_cast<std::uint64_t>(source.position));
    parts.push_back(std::move(place));
  }
  if (parts.size() == 1) return std::move(parts[0]);
  Json state;
  state.set("parts", std::move(parts));
  return state;
}

Result<> Order::move_part(std::size_t part, const Json& state) {
  const auto epoch = get_integer(state, "epoch", where),
             position = get_integer(state, "position", where);
  RETURN_IF_ERROR(epoch);
  RETURN_IF_ERROR(position);
  if (*epoch < 0 || *position < 0 ||
      *position > static_cast<std::int64_t>(sources_[part].part.size))
    return refused(cat("its data state names position ", *position, " of epoch ", *epoch,
                       ", which is not there"));
  begin(part, static_cast<std::uint64_t>(*epoch), static_cast<std::size_t>(*position));
  return {};
}

Result<> Order::move_to(const Json& state) {
  if (sources_.size() == 1) return move_part(0, state);
  const auto* parts = state.find("parts");
  if (!parts || !parts->is_array() || parts->array().size() != sources_.size())
    return refused(cat("it did not draw from a mix of ", sources_.size(), " sources"));
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    const auto& stored = parts->array()[k];
    const auto size = get_integer(stored, "size", where),
               epochs = get_integer(stored, "epochs", where);
    const auto weight = get_number(stored, "weight", where);
    if (!size || !epochs || !weight)
      return fail((!size ? size.error() : !epochs ? epochs.error() : weight.error()));
    const Part was{static_cast<std::size_t>(*size), *weight, *epochs};
    if (was != sources_[k].part)
      return refused(cat("source ", k + 1, " of the mix had ", was.size, " examples, weight ",
                         was.weight, " and epochs ", was.epochs, ", now ", sources_[k].part.size,
                         ", ", sources_[k].part.weight, " and ", sources_[k].part.epochs));
    RETURN_IF_ERROR(move_part(k, stored));
  }
  return {};
}

Json order_state(const Order& order, const std::vector<FilePrint>& files) {
  Json state = order.place();
  state.set("examples", static_cast<std::uint64_t>(order.size())),
      state.set("shuffle", order.options().shuffle);
  state.set("seed", std::to_string(order.options().seed));  // as text: a seed may have 64 bits
  state.set("files", files_state(files));
  return state;
}

Result<> restore_order(Order& order, const std::vector<FilePrint>& files, const Json& state) {
  RETURN_IF_ERROR(same_files(files, state));
  const auto size = get_integer(state, "examples", where);
  RETURN_IF_ERROR(size);
  // The order depends on these; with another value the position would mean other examples.
  if (*size != static_cast<std::int64_t>(order.size()))
    return refused(cat("it trained on ", *size, " examples, now ", order.size(),
                       " are used: the data options or the maximum length have changed"));
  RETURN_IF_ERROR(same_shuffle(order.options().shuffle, order.options().seed, state));
  return order.move_to(state);
}

}  // namespace troupe::engine::data
