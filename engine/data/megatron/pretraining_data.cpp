#include "engine/data/megatron/pretraining_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"

namespace troupe::engine::data::megatron {
namespace {

// Counts of samples, and the next one. A dataset whose limit is reached is not used any more.
class Blend {
 public:
  Blend(std::vector<double> weights, std::vector<std::int64_t> limits)
      : weights_(std::move(weights)), limits_(std::move(limits)), counts_(weights_.size()) {}

  BlendedSample next() {
    const double position = std::max(1.0, static_cast<double>(taken_++));
    std::size_t chosen = weights_.size();
    double largest = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (!limits_.empty() && counts_[i] >= limits_[i]) continue;
      const double behind = weights_[i] * position - static_cast<double>(counts_[i]);
      if (chosen == weights_.size() || behind > largest) {
        chosen = i;
        largest = behind;
      }
    }
    check(chosen < weights_.size(), "a dataset with samples left");
    return {static_cast<std::int32_t>(chosen), counts_[chosen]++};
  }

 private:
  std::vector<double> weights_;
  std::vector<std::int64_t> limits_;  // empty: none
  std::vector<std::int64_t> counts_;
  std::int64_t taken_ = 0;
};

std::vector<BlendedSample> drawn(Blend blend, std::int64_t size) {
  std::vector<BlendedSample> out;
  out.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) out.push_back(blend.next());
  return out;
}

using Datasets = std::vector<std::shared_ptr<const IndexedDataset>>;
using Samples = std::optional<std::int64_t>;

/// A blend asks each dataset for 0.5 % more samples than its share, against rounding.
constexpr double surplus = 0.005;

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

Result<SplitWeights> parse_split(std::string_view text) {
  const auto problem = [&] {
    return fail(Errc::usage, cat("split ", quote(text), ": expected one to three weights for ",
                                 "training, validation and test data, such as \"969, 30, 1\""));
  };
  SplitWeights weights{};
  std::size_t count = 0;
  for (const auto item : split(text, ',')) {
    const double weight = parse_number<double>(trim(item)).value_or(-1);
    if (count == split_count || !std::isfinite(weight) || weight < 0) return problem();
    weights[count++] = weight;
  }
  const double sum = weights[0] + weights[1] + weights[2];
  if (!(sum > 0) || !std::isfinite(sum)) return problem();
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::array<std::optional<SequenceRange>, split_count> split_ranges(const SplitWeights& weights,
                                                                   std::int64_t sequences) {
  std::array<std::optional<SequenceRange>, split_count> out;
  const auto all = static_cast<double>(sequences);
  // nearbyint rounds half to even, as Python's round().
  const auto place = [&](double share) { return std::llrint(std::nearbyint(share * all)); };
  double before = 0;
  for (std::size_t i = 0; i < split_count; ++i) {
    const double after = before + weights[i];
    if (after > before)
      out[i] = SequenceRange{place(before), std::min<std::int64_t>(place(after), sequences)};
    before = after;
  }
  return out;
}

std::vector<double> normalized(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> out;
  for (const double weight : weights) out.push_back(weight / sum);
  return out;
}

std::vector<BlendedSample> blend_by_weight(const std::vector<double>& weights, std::int64_t size) {
  return drawn(Blend(weights, {}), size);
}

std::vector<BlendedSample> blend_all(const std::vector<std::int64_t>& sizes) {
  const auto all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  std::vector<double> weights;
  for (const std::int64_t size : sizes)
    weights.push_back(static_cast<double>(size) / static_cast<double>(all));
  return drawn(Blend(std::move(weights), sizes), all);
}

Result<PretrainingOptions> parse_data_path(const std::vector<std::string>& words) {
  PretrainingOptions out;
  out.has_weights = words.size() > 1 && parse_number<double>(words[0]).has_value();
  if (out.has_weights && words.size() % 2 != 0)
    return fail(Errc::usage,
                cat("expected a path behind each weight, found ", words.size(), " words"));
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!out.has_weights) {
      out.parts.push_back({words[i], 0});
      continue;
    }
    const auto weight = parse_number<double>(words[i]);
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
