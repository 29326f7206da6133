// PretrainingData: the training, validation and test samples of one dataset or of a blend, in the
// order of Megatron core (blended_megatron_dataset_builder.py).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/megatron/gpt_dataset.h"

namespace troupe::engine::data::megatron {

/// Training, validation and test data.
constexpr std::size_t split_count = 3;
using SplitWeights = std::array<double, split_count>;

/// The normalized weights of "969,30,1"; missing ones are 0. Errc::usage for anything but one to
/// three non-negative numbers, not all 0.
Result<SplitWeights> parse_split(std::string_view text);

/// The sequences of each split: the cumulative weights times `sequences`, rounded half to even.
/// nullopt for a split of weight 0.
std::array<std::optional<SequenceRange>, split_count> split_ranges(const SplitWeights& weights,
                                                                   std::int64_t sequences);

/// One sample of a blend.
struct BlendedSample {
  std::int32_t dataset = 0;
  std::int64_t sample = 0;  ///< of that dataset
  bool operator==(const BlendedSample&) const = default;
};

/// Weights that sum to 1.
std::vector<double> normalized(const std::vector<double>& weights);

/// `size` samples: each from the dataset that is furthest behind its share. `weights` sum to 1.
std::vector<BlendedSample> blend_by_weight(const std::vector<double>& weights, std::int64_t size);

/// All samples of all datasets, in proportion to their sizes.
std::vector<BlendedSample> blend_all(const std::vector<std::int64_t>& sizes);

/// One dataset of a blend: the path without .bin and .idx, and its weight.
struct BlendPart {
  std::string prefix;
  double weight = 0;
};

struct PretrainingOptions {
  std::vector<BlendPart> parts;
  bool has_weights = false;  ///< false: all samples of all parts, in proportion to their sizes
  std::string split = "969, 30, 1";
  /// Samples of each split; nullopt: those of one epoch.
  std::array<std::optional<std::int64_t>, split_count> samples;
  SampleOptions sample;
};

/// The parts of Megatron's --data-path: "P", "P Q ..." or "W P V Q ...". Errc::usage for a weight
/// without a path, or a mixture of the two forms.
Result<PretrainingOptions> parse_data_path(const std::vector<std::string>& words);

/// The samples of one split.
class PretrainingSplit {
 public:
  /// `blend`: nullopt for a single dataset.
  PretrainingSplit(std::vector<GptDataset> datasets,
                   std::optional<std::vector<BlendedSample>> blend)
      : datasets_(std::move(datasets)), blend_(std::move(blend)) {}
  std::int64_t size() const;
  /// Sample `index` of [0, size()). Errors of IndexedDataset::append.
  Result<PretrainingSample> sample(std::int64_t index) const;
  const std::vector<GptDataset>& datasets() const { return datasets_; }
  const std::optional<std::vector<BlendedSample>>& blend() const { return blend_; }

 private:
  std::vector<GptDataset> datasets_;
  std::optional<std::vector<BlendedSample>> blend_;
};

class PretrainingData {
 public:
  /// Opens the datasets and draws the samples. Errors of IndexedDataset::open, parse_split and
  /// GptDataset::build; Errc::usage for weights without a number of samples.
  static Result<PretrainingData> open(const PretrainingOptions& options);
  /// Training 0, validation 1, test 2; nullptr for a split of weight 0.
  const PretrainingSplit* split(std::size_t which) const {
    return splits_[which] ? &*splits_[which] : nullptr;
  }

 private:
  std::array<std::optional<PretrainingSplit>, split_count> splits_;
};

}  // namespace troupe::engine::data::megatron
