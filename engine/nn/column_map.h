// ColumnMap: columns of one matrix taken from another, in blocks of equal width.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/nn/forward_context.h"

namespace troupe::engine::nn {

class ColumnMap {
 public:
  ColumnMap() = default;
  /// from[i]: the block of the source that block i of the result is; -1: zeros. `source`: blocks of
  /// a row of the source; `width`: columns of a block.
  ColumnMap(std::vector<std::int32_t> from, std::int64_t source, std::int64_t width);

  /// x [T, source * width] -> [T, blocks * width].
  Tensor select(ops::Device& device, const Tensor& x) const;
  /// Gradient of select() where it takes no block twice: dy [T, blocks * width] -> [T, source *
  /// width], zeros in the blocks that it does not take.
  Tensor select_backward(ops::Device& device, const Tensor& dy) const;
  /// Adds the gradient of select() to dx, in the order of the blocks of dy.
  void add_backward(ops::Device& device, const Tensor& dy, Tensor& dx) const;

 private:
  std::vector<std::int32_t> rows_of(std::int64_t count, const std::vector<std::int32_t>& blocks,
                                    std::int64_t source) const;

  std::vector<std::int32_t> from_, into_;  ///< into_[j]: the block of the result that takes j
  std::int64_t source_ = 0, width_ = 1;
};

}  // namespace troupe::engine::nn
