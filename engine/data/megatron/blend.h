// The order in which Megatron core mixes datasets (megatron/core/datasets/blended_dataset.py).
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::engine::data::megatron {

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

}  // namespace troupe::engine::data::megatron
