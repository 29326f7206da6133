// SimdSoftmax: softmax kernels over blocks of logits on the host, in the widest vectors of this
// processor.
#pragma once

#include <cstddef>

namespace troupe::engine::generate {

inline constexpr std::size_t row_block = 256;  ///< logits per block

/// `logits` has row_block elements. Weights are 2^(scale * logit - base), where |scale * logit| is
/// at most 150,000 and base is an integer such that no weight exceeds 2.
struct SimdSoftmax {
  float (*largest)(const float* logits);
  bool (*all_finite)(const float* logits);
  /// Computes weights with a relative error of about 1e-11, at least 2^-1000. Returns their sum.
  double (*exp2_weights)(const float* logits, double scale, double base, double* weights);
  /// Sum of the weights with a relative error of approximate_sum_error; nullptr where
  /// exp2_weights() is as fast. Weights below 2^-126 may count as 0.
  double (*approximate_sum)(const float* logits, double scale, double base);
};
inline constexpr double approximate_sum_error = 2.8e-7;

/// The kernels for this processor.
const SimdSoftmax& simd_softmax();

}  // namespace troupe::engine::generate
