// LookupGradient: the gradient of a tied embedding table through its lookup, as a sum of its own.
//
// The language head adds to the gradient of a tied table in every micro-batch, and so does the
// lookup. One sum of both would depend on where the batch is split. Two sums, added once before the
// update, do not.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ops/device.h"

namespace troupe::engine::nn {

class LookupGradient {
 public:
  /// `shape` [V, D] of the table. The sum is zero.
  LookupGradient(ops::Device& device, const Shape& shape);

  /// sum[rows[i]] += from[i], in the order of i; a row below 0 is skipped. from [T, D].
  void add(const Tensor& from, std::span<const std::int32_t> rows);
  /// Whether the sum is zero, because no row was added.
  bool empty() const { return rows_.empty(); }
  /// Adds the sum to `grad` [V, D]; the sum becomes zero.
  void move_to(Tensor& grad);

 private:
  ops::Device& device_;
  Tensor sum_;                         ///< [V, D], undefined in rows that are not in rows_
  std::vector<std::int32_t> rows_;     ///< rows with a sum; clearing all of sum_ would take longer
  std::vector<std::uint8_t> has_sum_;  ///< [V]
};

}  // namespace troupe::engine::nn
