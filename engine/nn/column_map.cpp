#include "engine/nn/column_map.h"

#include <limits>
#include <utility>

#include "engine/base/check.h"

namespace troupe::engine::nn {
namespace {

// The blocks of all rows, one below the other.
Tensor blocks_of(const Tensor& x, std::int64_t width) {
  return x.view({x.count() / width, width});
}

}  // namespace

ColumnMap::ColumnMap(std::vector<std::int32_t> from, std::int64_t source, std::int64_t width)
    : from_(std::move(from)),
      into_(static_cast<std::size_t>(source), -1),
      source_(source),
      width_(width) {
  for (std::size_t i = 0; i < from_.size(); ++i)
    if (from_[i] >= 0) into_[static_cast<std::size_t>(from_[i])] = static_cast<std::int32_t>(i);
}

std::vector<std::int32_t> ColumnMap::rows_of(std::int64_t count,
                                             const std::vector<std::int32_t>& blocks,
                                             std::int64_t source) const {
  check(count * source <= std::numeric_limits<std::int32_t>::max(),
        "ColumnMap: more than 2^31 blocks in a pass");
  std::vector<std::int32_t> rows;
  rows.reserve(static_cast<std::size_t>(count) * blocks.size());
  for (std::int64_t t = 0; t < count; ++t) {
    const auto first = static_cast<std::int32_t>(t * source);
    for (const std::int32_t block : blocks) rows.push_back(block < 0 ? -1 : first + block);
  }
  return rows;
}

Tensor ColumnMap::select(ops::Device& device, const Tensor& x) const {
  const std::int64_t count = x.shape()[0];
  Tensor y = device.empty({count, static_cast<std::int64_t>(from_.size()) * width_});
  Tensor blocks = blocks_of(y, width_);
  device.gather_rows(blocks_of(x, width_), rows_of(count, from_, source_), blocks);
  return y;
}

Tensor ColumnMap::select_backward(ops::Device& device, const Tensor& dy) const {
  const std::int64_t count = dy.shape()[0];
  Tensor dx = device.empty({count, source_ * width_});
  Tensor blocks = blocks_of(dx, width_);
  device.gather_rows(blocks_of(dy, width_),
                     rows_of(count, into_, static_cast<std::int64_t>(from_.size())), blocks);
  return dx;
}

void ColumnMap::add_backward(ops::Device& device, const Tensor& dy, Tensor& dx) const {
  Tensor blocks = blocks_of(dx, width_);
  device.scatter_add_rows(blocks_of(dy, width_), rows_of(dy.shape()[0], from_, source_), blocks);
}

}  // namespace troupe::engine::nn
