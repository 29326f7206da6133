// RotaryTable: cosines and sines of the rotary embedding (Su et al. 2021, arXiv:2104.09864), grown as positions ask for them.
#pragma once

#include <vector>

#include "engine/ops/device.h"

namespace troupe::engine::nn {

class RotaryTable {
 public:
  /// `inverse_frequencies` [K/2] in radians per position, scaling (linear, llama3) already applied.
  RotaryTable(ops::Device& device, std::vector<double> inverse_frequencies);

  /// Makes positions 0 .. count-1 available.
  void reserve(std::int64_t count);
  const Tensor& cos() const { return cos_; }  ///< [P, K/2]
  const Tensor& sin() const { return sin_; }

 private:
  ops::Device* device_;
  std::vector<double> inverse_frequencies_;
  std::int64_t count_ = 0;
  Tensor cos_, sin_;
};

}  // namespace troupe::engine::nn
