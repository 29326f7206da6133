#include "engine/data/megatron/pretraining_data.h"

#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::engine::data::megatron {
namespace {

using Datasets = std::vector<std::shared_ptr<const IndexedDataset>>;
using Samples = std::optional<std::int64_t>;

/// A blend asks each dataset for 0.5 % more samples than its share, against rounding.
constexpr double surplus = 0.005;

std::optional<double> number_of(std::string_view word) {
  double value = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (code != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// What each dataset contributes to `samples` of the blend.
std::vector<std::int64_t> shares(const std::vector<double>& weights, std::int64_t samples,
                                 double more) {
  std::vector<std::int64_t> out;
  for (const double weight : weights)
    out.push_back(
        std::llrint(std::ceil(std::ceil(static_cast<double>(samples) * weight) * (1 + more))));
  return out;
}

// Samples that are requested of each dataset.
std::vector<Samples> requested(const PretrainingOptions& options, Samples samples,
                               const std::vector<double>& weights) {
  const std::size_t count = options.parts.size();
  if (count == 1 && !options.has_weights) return {samples};
  if (!options.has_weights) return std::vector<Samples>(count);
  const auto sizes = shares(weights, *samples, surplus);
  return {sizes.begin(), sizes.end()};
}

std::vector<BlendedSample> blend_of(const std::vector<GptDataset>& datasets,
                                    const std::vector<double>& weights, Samples samples) {
  if (!weights.empty()) {
    const auto sizes = shares(weights, *samples, 0);
    return blend_by_weight(weights, std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
  }
  std::vector<std::int64_t> sizes;
  std::vector<double> by_size;
  for (const auto& dataset : datasets) {
    sizes.push_back(dataset.size());
    by_size.push_back(static_cast<double>(dataset.size()));
  }
  const auto all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (!samples) return blend_all(sizes);
  return blend_by_weight(normalized(by_size), std::min(*samples, all));
}

Result<Datasets> open_all(const PretrainingOptions& options) {
  Datasets out;
  for (const auto& part : options.parts) {
    auto data = IndexedDataset::open(part.prefix);
    RETURN_IF_ERROR(data);
    out.push_back(std::make_shared<const IndexedDataset>(std::move(*data)));
  }
  return out;
}

Result<> check_options(const PretrainingOptions& options) {
  if (options.parts.empty()) return fail(Errc::usage, "expected the path of a dataset");
  if (options.sample.sequence_length < 1)
    return fail(Errc::usage, cat("expected a sequence length of 1 or more, found ",
                                 options.sample.sequence_length));
  for (const auto& part : options.parts)
    if (options.has_weights && !(part.weight > 0 && std::isfinite(part.weight)))
      return fail(Errc::usage, cat("the weight of ", part.prefix, ": expected a positive number, ",
                                   "found ", part.weight));
  return {};
}

}  // namespace

Result<PretrainingOptions> parse_data_path(const std::vector<std::string>& words) {
  PretrainingOptions out;
  out.has_weights = words.size() > 1 && number_of(words[0]).has_value();
  if (out.has_weights && words.size() % 2 != 0)
    return fail(Errc::usage,
                cat("expected a path behind each weight, found ", words.size(), " words"));
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!out.has_weights) {
      out.parts.push_back({words[i], 0});
      continue;
    }
    const auto weight = number_of(words[i]);
    if (!weight)
      return fail(Errc::usage, cat("expected a weight before each path, found ", quote(words[i])));
    out.parts.push_back({words[++i], *weight});
  }
  if (out.parts.empty()) return fail(Errc::usage, "expected the path of a dataset");
  return out;
}

std::int64_t PretrainingSplit::size() const {
  return blend_ ? static_cast<std::int64_t>(blend_->size()) : datasets_.front().size();
}

Result<PretrainingSample> PretrainingSplit::sample(std::int64_t index) const {
  check(index >= 0 && index < size(), "a sample of the split");
  if (!blend_) return datasets_.front().sample(index);
  const BlendedSample& chosen = (*blend_)[static_cast<std::size_t>(index)];
  return datasets_[static_cast<std::size_t>(chosen.dataset)].sample(chosen.sample);
}

namespace {
constexpr std::array<std::string_view, split_count> part_names{"training", "validation", "test"};
}  // namespace

Result<PretrainingData> PretrainingData::open(const PretrainingOptions& options) {
  RETURN_IF_ERROR(check_options(options));
  const auto shares_of_splits = parse_split(options.split);
  RETURN_IF_ERROR(shares_of_splits);
  const auto sources = open_all(options);
  RETURN_IF_ERROR(sources);
  std::vector<double> weights;
  if (options.has_weights) {
    for (const auto& part : options.parts) weights.push_back(part.weight);
    weights = normalized(weights);
  }
  PretrainingData out;
  for (std::size_t i = 0; i < split_count; ++i) {
    if (!split_ranges(*shares_of_splits, 0)[i]) continue;
    const Samples samples = options.samples[i];
    if (options.has_weights && !samples)
      return fail(Errc::usage, "weights of datasets need a number of samples of each split");
    const auto sizes = requested(options, samples, weights);
    std::vector<GptDataset> datasets;
    for (std::size_t k = 0; k < sources->size(); ++k) {
      const auto ranges = split_ranges(*shares_of_splits, (*sources)[k]->sequences());
      auto dataset = GptDataset::build((*sources)[k], *ranges[i], sizes[k], options.sample);
      if (!dataset)
        return fail(dataset.error().code,
                    cat("the ", part_names[i], " part of pretrain.split: ", dataset.error().what));
      datasets.push_back(std::move(*dataset));
    }
    std::optional<std::vector<BlendedSample>> blend;
    if (datasets.size() > 1 || options.has_weights) blend = blend_of(datasets, weights, samples);
    out.splits_[i].emplace(std::move(datasets), std::move(blend));
  }
  return out;
}

}  // namespace troupe::engine::data::megatron
