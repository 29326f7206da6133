// Passes over a block of a row of logits on the host, in the widest vectors that this processor
// has.
#pragma once

#include <cstddef>

namespace troupe::engine::generate {

inline constexpr std::size_t row_block = 256;  ///< logits that a pass reads

/// `logits` are row_block of them. Weights are 2^(scale * logit - base), where scale * logit is 150
/// thousand at most and base a whole number that no weight exceeds 2 with.
struct RowPasses {
  float (*largest)(const float* logits);
  bool (*all_finite)(const float* logits);
  /// Weights to about 1e-11 of themselves; what would be below 2^-1000 is that. Gives their sum.
  double (*weigh)(const float* logits, double scale, double base, double* weights);
  /// Their sum to rough_error of itself, or nullptr where weigh() is as fast. What would be below
  /// 2^-126 may be 0.
  double (*rough_sum)(const float* logits, double scale, double base);
};
inline constexpr double rough_error = 2.8e-7;

/// For this processor.
const RowPasses& row_passes();

}  // namespace troupe::engine::generate
