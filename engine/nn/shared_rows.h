// SharedRows: rows of a batch that are computed once for several sequences. The hidden state of a
// row depends only on the tokens up to it. Where sequences share a prefix (samples of one prompt,
// the two answers of a pair), every module but attention computes the U distinct rows; attention,
// whose keys lie sequence by sequence, works on all T rows of the layout.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/nn/forward_context.h"

namespace troupe::engine::nn {

/// The two index arrays of numpy.unique (return_index, return_inverse).
struct SharedRows {
  ops::Indices index;    ///< [U] first row of the layout with each distinct row, rising
  ops::Indices inverse;  ///< [T] distinct row of each row of the layout
};

// Without shared rows, all four functions return their argument.

/// x [U, W] of distinct rows -> [T, W], a copy for each row that shares it.
Tensor expand_rows(const ForwardContext& pass, const Tensor& x);
/// Gradient of expand_rows: d[T, W] -> d[U, W], sums over the rows that share one, in the order of
/// the layout.
Tensor expand_rows_backward(const ForwardContext& pass, const Tensor& dy);
/// x [T, W] of the layout -> [U, W], the first of each group of equal rows.
Tensor unique_rows(const ForwardContext& pass, const Tensor& x);
/// Gradient of unique_rows: d[U, W] -> d[T, W], zeros at the rows that were left out.
Tensor unique_rows_backward(const ForwardContext& pass, const Tensor& dy);

}  // namespace troupe::engine::nn
