// Peak rate of matrix products: the ceiling of compute-bound operations.
#pragma once

#include <memory>

#include "benchmarks/support/options.h"

namespace troupe::benchmarks {

/// A square product, M = N = K = 2048 (256 for the tiny shape), f32 or bf16 inputs, f32 sums.
/// Allocates its memory at the first call.
class ProductCeiling {
 public:
  ProductCeiling(engine::ops::Device& device, const Options& options);
  ~ProductCeiling();

  /// Returns the current rate in GFLOP/s: the greater of the best of three calls of our kernels
  /// and, if the build found oneDNN, of three of its own with packed weights.
  double measure();
  /// Best rates so far: ours, and oneDNN's (0: not available).
  double ours() const { return ours_; }
  double theirs() const { return theirs_; }

 private:
  struct Parts;
  engine::ops::Device& device_;
  const Options& options_;
  double ours_ = 0, theirs_ = 0;
  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe::benchmarks
