#include "engine/data/loader/sampler.h"

#include <algorithm>
#include <cmath>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/data/loader/resume.h"

namespace troupe::engine::data {
std::optional<std::size_t> next_source(const std::vector<double>& weights,
                                       const std::vector<std::uint64_t>& drawn,
                                       const std::vector<bool>& open) {
  std::optional<std::size_t> best;
  double minimum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const double after = (static_cast<double>(drawn[k]) + 0.5) / weights[k];
    if (open[k] && (!best || after < minimum)) {
      best = k;
      minimum = after;
    }
  }
  return best;
}

Sampler::Sampler(std::vector<SourceInfo> sources, LoaderOptions options) : options_(options) {
  check(options.batch_size > 0 && options.epochs >= 0, "Sampler: batch_size >= 1, epochs >= 0");
  for (auto& info : sources) {
    check(info.size > 0 && info.size <= UINT32_MAX && info.weight > 0 && info.epochs >= 0,
          "Sampler: needs 1 to 2^32-1 examples");
    sources_.push_back({.info = info, .offset = size_});
    size_ += info.size;
  }
  check(!sources_.empty(), "Sampler: needs a source");
  // A mix repeats rows by its weights.
  if (sources_.size() == 1)
    options_.batch_size = std::min(options_.batch_size, static_cast<std::int64_t>(size_));
  for (std::size_t k = 0; k < sources_.size(); ++k) begin(k, 0, 0);
}

bool Sampler::is_open(const Source& source) const {
  return source.info.epochs == 0 ||
         source.drawn() < static_cast<std::uint64_t>(source.info.epochs) * source.info.size;
}

// The items of options_.epochs; 0: no limit. A part of an epoch is at least one item; where batches
// end with the epoch, it is a number of batches, rounded up as transformers' Trainer does.
std::uint64_t Sampler::items_of_epochs() const {
  if (options_.epochs <= 0) return 0;
  if (options_.last_batch == LastBatch::join)
    return std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(std::llround(options_.epochs * static_cast<double>(size_))));
  const auto of_epoch = static_cast<std::uint64_t>(batches_of(size_));
  const auto all =
      static_cast<std::uint64_t>(std::ceil(options_.epochs * static_cast<double>(of_epoch) - 1e-9));
  const auto rest = all % of_epoch * static_cast<std::uint64_t>(options_.batch_size);
  return all / of_epoch * size_ + std::min<std::uint64_t>(rest, size_);
}

std::optional<std::uint64_t> Sampler::limit() const {
  std::uint64_t all = 0;
  bool endless = false;
  for (const auto& source : sources_) {
    endless = endless || source.info.epochs == 0;
    all += static_cast<std::uint64_t>(source.info.epochs) * source.info.size;
  }
  const std::uint64_t passes = items_of_epochs();
  if (endless && passes == 0) return std::nullopt;
  return endless ? passes : passes == 0 ? all : std::min(all, passes);
}

std::optional<Sampler::Item> Sampler::next() {
  std::vector<double> weights;
  std::vector<std::uint64_t> drawn;
  std::vector<bool> open;
  std::uint64_t all = 0;
  for (const auto& source : sources_) {
    weights.push_back(source.info.weight);
    drawn.push_back(source.drawn());
    open.push_back(is_open(source));
    all += source.drawn();
  }
  const auto end = limit();
  const auto chosen = end && all >= *end ? std::nullopt : next_source(weights, drawn, open);
  if (!chosen) return std::nullopt;
  auto& source = sources_[*chosen];
  if (source.position == source.info.size) begin(*chosen, source.epoch + 1, 0);
  const std::size_t index =
      source.offset +
      (source.permutation.empty() ? source.position : source.permutation[source.position]);
  ++source.position;
  return Item{index, source.epoch * size_ + index};
}

double Sampler::epoch() const {
  double drawn = 0;
  for (const auto& source : sources_) drawn += static_cast<double>(source.drawn());
  return drawn / static_cast<double>(size_);
}

bool Sampler::at_epoch_end() const {
  std::uint64_t drawn = 0;
  for (const auto& source : sources_) drawn += source.drawn();
  return drawn > 0 && drawn % size_ == 0;
}

std::int64_t Sampler::batches_of(std::uint64_t items) const {
  const auto batch = static_cast<std::uint64_t>(options_.batch_size);
  const auto whole = [&](std::uint64_t rows) {
    return options_.last_batch == LastBatch::drop ? rows / batch : (rows + batch - 1) / batch;
  };
  return static_cast<std::int64_t>(options_.last_batch == LastBatch::join
                                       ? whole(items)
                                       : items / size_ * whole(size_) + whole(items % size_));
}

std::int64_t Sampler::batches() const {
  return batches_of(limit().value_or(0));
}

void Sampler::begin(std::size_t index, std::uint64_t epoch, std::size_t position) {
  auto& source = sources_[index];
  if (options_.shuffle && (source.permutation.empty() || epoch != source.epoch))
    source.permutation =
        permutation(source.info.size, options_.seed, permutation_stream(index, epoch));
  source.epoch = epoch;
  source.position = position;
}

Json Sampler::state() const {
  Json::Array parts;
  for (const auto& source : sources_) {
    Json place;
    if (sources_.size() > 1)
      place.set("size", static_cast<std::uint64_t>(source.info.size))
          .set("weight", source.info.weight)
          .set("epochs", source.info.epochs);
    place.set("epoch", source.epoch);
    place.set("position", static_cast<std::uint64_t>(source.position));
    parts.push_back(std::move(place));
  }
  if (parts.size() == 1) return std::move(parts[0]);
  Json state;
  state.set("parts", std::move(parts));
  return state;
}

Result<> Sampler::restore_source(std::size_t index, const Json& state) {
  const auto epoch = get_integer(state, "epoch", data_state),
             position = get_integer(state, "position", data_state);
  RETURN_IF_ERROR(epoch);
  RETURN_IF_ERROR(position);
  if (*epoch < 0 || *position < 0 ||
      *position > static_cast<std::int64_t>(sources_[index].info.size))
    return cannot_resume(cat("the checkpoint's position ", *position, " of epoch ", *epoch,
                             " is behind the end of the data"));
  begin(index, static_cast<std::uint64_t>(*epoch), static_cast<std::size_t>(*position));
  return {};
}

Result<> Sampler::restore(const Json& state) {
  if (sources_.size() == 1) return restore_source(0, state);
  const auto* parts = state.find("parts");
  if (!parts || !parts->is_array() || parts->array().size() != sources_.size())
    return cannot_resume(cat("the run did not use a mix of ", sources_.size(), " sources"));
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    const auto& stored = parts->array()[k];
    const auto size = get_integer(stored, "size", data_state),
               epochs = get_integer(stored, "epochs", data_state);
    const auto weight = get_number(stored, "weight", data_state);
    RETURN_IF_ERROR(size);
    RETURN_IF_ERROR(epochs);
    RETURN_IF_ERROR(weight);
    const SourceInfo was{static_cast<std::size_t>(*size), *weight, *epochs};
    if (was != sources_[k].info)
      return cannot_resume(cat("source ", k + 1, " of the mix had ", was.size, " examples, weight ",
                               was.weight, " and epochs ", was.epochs, ", now ",
                               sources_[k].info.size, ", ", sources_[k].info.weight, " and ",
                               sources_[k].info.epochs));
    RETURN_IF_ERROR(restore_source(k, stored));
  }
  return {};
}

Json sampler_state(const Sampler& sampler, const std::vector<FileFingerprint>& files) {
  Json state = sampler.state();
  state.set("examples", static_cast<std::uint64_t>(sampler.size()));
  state.set("shuffle", sampler.options().shuffle);
  state.set("seed", std::to_string(
                        sampler.options().seed));  // as text: JSON readers may not support 64 bits
  state.set("files", files_state(files));
  return state;
}

Result<> restore_sampler(Sampler& sampler, const std::vector<FileFingerprint>& files,
                         const Json& state) {
  RETURN_IF_ERROR(check_same_files(files, state));
  const auto size = get_integer(state, "examples", data_state);
  RETURN_IF_ERROR(size);
  // The order depends on these: with other values the position would select other examples.
  if (*size != static_cast<std::int64_t>(sampler.size()))
    return cannot_resume(cat("the run used ", *size, " examples, now ", sampler.size(),
                             ": the data options or train.max_length have changed"));
  RETURN_IF_ERROR(check_same_shuffle(sampler.options().shuffle, sampler.options().seed, state));
  return sampler.restore(state);
}

}  // namespace troupe::engine::data
