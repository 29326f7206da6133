// What the machine can do in a matrix product: the ceiling of everything that is made of products.
#pragma once

#include <memory>

#include "benchmarks/support/options.h"

namespace troupe::benchmarks {

/// A square product, M = N = K = 2048 (256 for the tiny shape), f32 or bf16 inputs, f32 sums.
/// Memory is taken at the first call.
class ProductCeiling {
 public:
  ProductCeiling(engine::ops::Device& device, const Options& options);
  ~ProductCeiling();

  /// GFLOP/s now: the best of three by our kernels and, where oneDNN was there when this was built,
  /// of three of its own with packed weights; the greater of the two.
  double measure();
  /// Of the best call so far: ours, and oneDNN's (0: not here).
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
