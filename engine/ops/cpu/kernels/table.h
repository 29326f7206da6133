// The table of one instruction set: every kernel, instantiated for its vectors.
#pragma once

#include "engine/ops/cpu/attention/micro_decode.h"
#include "engine/ops/cpu/gemm/micro_dot_packed.h"
#include "engine/ops/cpu/gemm/micro_int8.h"
#include "engine/ops/cpu/gemm/micro_nn.h"
#include "engine/ops/cpu/gemm/micro_nt.h"
#include "engine/ops/cpu/gemm/micro_packed.h"
#include "engine/ops/cpu/kernels/activations.h"
#include "engine/ops/cpu/kernels/norms.h"
#include "engine/ops/cpu/kernels/rows.h"

namespace troupe::engine::ops::cpu::kernels {

template <class V>
constexpr Kernels table(const char* isa) {
  return {.isa = isa,
          .gemm_nt = gemm_nt<V>,
          .gemm_nt_few_rows = gemm_nt_few_rows<V>,
          .gemm_nn = gemm_nn<V>,
          .decode_scores = decode_scores<V>,
          .decode_values = decode_values<V>,
          .gemm_f32_dot = dot_kernel<V>(),
          .gemm_f32 = panel_kernel<V, F32Panel<V>>(),
          .gemm_bf16 = panel_kernel<V, Bf16Panel<V>>(),
          .gemm_int8 = int8_kernel<V, Bf16Panel<V>>(),
          .softmax_sums = softmax_sums<V>,
          .softmax_in_place = softmax_in_place<V>,
          .attention_weights = attention_weights<V>,
          .attention_dscores = attention_dscores<V>,
          .cap = cap<V>,
          .cap_backward = cap_backward<V>,
          .add_alibi_bias = add_alibi_bias<V>,
          .lm_head_dlogits = lm_head_dlogits<V>,
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

}  // namespace troupe::engine::ops::cpu::kernels
