// The table of one instruction set: every kernel, made for its lanes.
#pragma once

#include "engine/ops/cpu/kernels_attention.h"
#include "engine/ops/cpu/kernels_direct.h"
#include "engine/ops/cpu/kernels_gates.h"
#include "engine/ops/cpu/kernels_int8.h"
#include "engine/ops/cpu/kernels_lanes.h"
#include "engine/ops/cpu/kernels_norms.h"
#include "engine/ops/cpu/kernels_outer.h"
#include "engine/ops/cpu/kernels_panels.h"
#include "engine/ops/cpu/kernels_rows.h"

namespace troupe::engine::ops::kernels {

template <class V>
constexpr Kernels table(const char* isa) {
  return {.isa = isa,
          .dot_product = dot_product<V>,
          .direct_product = direct_product<V>,
          .outer_product = outer_product<V>,
          .row_scores = row_scores<V>,
          .row_values = row_values<V>,
          .dots = lanes<V>(),
          .singles = panels<V, Singles<V>>(),
          .pairs = panels<V, Pairs<V>>(),
          .whole = int8_panels<V, Pairs<V>>(),
          .softmax_sums = softmax_sums<V>,
          .softmax_in_place = softmax_in_place<V>,
          .attention_weights = attention_weights<V>,
          .attention_dscores = attention_dscores<V>,
          .cap = cap<V>,
          .cap_backward = cap_backward<V>,
          .tilt = tilt<V>,
          .head_dlogits = head_dlogits<V>,
          .dot = dot<V>,
          .mean_square = mean_square<V>,
          .rms_norm = rms_norm<V>,
          .rms_norm_dx = rms_norm_dx<V>,
          .rms_norm_dgain = rms_norm_dgain<V>,
          .mean = mean<V>,
          .variance = variance<V>,
          .layer_norm = layer_norm<V>,
          .layer_norm_dx = layer_norm_dx<V>,
          .layer_norm_dgain = layer_norm_dgain<V>,
          .column_sums = column_sums<V>,
          .rope = rope<V>,
          .gated = gated<V>,
          .gated_backward = gated_backward<V>,
          .activate = activate<V>,
          .activate_backward = activate_backward<V>,
          .copy_lines = copy_lines<V>,
          .add = add<V>,
          .scale = scale<V>,
          .adamw = adamw<V>,
          .sum_of_squares = sum_of_squares<V>,
          .all_finite = all_finite<V>};
}

}  // namespace troupe::engine::ops::kernels
