// Rows that sequences of a pass have in common. A row's hidden state depends on nothing but the
// tokens up to it, so where sequences begin alike (samples of one prompt, the two answers of a
// pair) every module but attention computes such a row once: it then has the U rows that differ,
// and attention, whose keys lie sequence by sequence, the T rows of the layout.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/nn/forward_context.h"

namespace troupe::engine::nn {

struct SharedRows {
  std::vector<std::int32_t>
      first;  ///< [U] the row of the layout that a computed row stands at first, rising
  std::vector<std::int32_t> whole;  ///< [T] the computed row of each row of the layout
};

// Two maps with the way back through each. Without shared rows all give what they are given.

/// x [U, W] of computed rows -> [T, W], a copy at each row that shares it.
Tensor all_rows(const Pass& pass, const Tensor& x);
/// d[T, W] -> d[U, W], the sums over what shares a row, in the order of the layout.
Tensor all_rows_backward(const Pass& pass, const Tensor& dy);
/// x [T, W] of the layout -> [U, W], each where it stands first: for what is alike in all rows that
/// share one.
Tensor computed_rows(const Pass& pass, const Tensor& x);
/// d[U, W] -> d[T, W], zeros at the rows that were left out.
Tensor computed_rows_backward(const Pass& pass, const Tensor& dy);

}  // namespace troupe::engine::nn
