// NormalizedRows: the rows of a weight divided by their norms, the output matrix of NormHead
// (Baichuan 2: Yang et al. 2023, arXiv:2309.10305, section 2.4).
#pragma once

#include "engine/nn/parameters.h"

namespace troupe::engine::nn {

/// W' with W'[v] = W[v] / |W[v]|, for a weight W [V, D]. A row of zeros stays zero.
class NormalizedRows {
 public:
  NormalizedRows(ops::Device& device, const Parameter& weight);
  /// W' [V, D].
  const Tensor& rows() const { return rows_; }
  /// Adds the gradient of the weight that the gradient `drows` [V, D] of W' implies:
  /// (dW' - W' (W' . dW')) / |W|, row by row.
  void backward(const Tensor& drows) const;

 private:
  ops::Device& device_;
  const Parameter& weight_;
  Tensor gain_, rows_, inverse_;
};

}  // namespace troupe::engine::nn
