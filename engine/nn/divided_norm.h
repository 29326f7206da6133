// RMSNorm over rows whose columns are divided over tensor-parallel ranks: OLMo 2 normalizes all
// queries, and all keys, of a token at once. The ranks exchange one sum per row.
#pragma once

#include "engine/nn/parameters.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

/// RMSNorm of whole rows, of which each rank of `tp` has the columns of its part of `gain`. Columns
/// that several ranks have count on the first one (Shard::first). Collective over `tp`; the results
/// of a row do not depend on other rows.
struct DividedNorm {
  ops::Device& device;
  parallel::Communicator& tp;
  const Parameter& gain;  ///< this rank's part [C] of the gain [D]
  float eps, offset;      ///< as Norm's

  /// x [T, C] -> y [T, C], and inverse [T]: 1 / sqrt(mean of squares of the row + eps).
  void forward(const Tensor& x, Tensor& y, Tensor& inverse) const;
  /// Assigns dx [T, C] and adds to dgain [C]. Where ranks share columns, dy and dx are their shares
  /// of the gradient.
  void backward(const Tensor& x, const Tensor& inverse, const Tensor& dy, Tensor& dx,
                Tensor& dgain) const;

 private:
  std::int64_t width() const { return gain.logical_shape().count(); }
};

}  // namespace troupe::engine::nn
