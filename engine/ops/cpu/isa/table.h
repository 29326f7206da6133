// The table of one instruction set: every kernel, instantiated for its vectors.
#pragma once

#include "engine/ops/cpu/attention/micro_decode.h"
#include "engine/ops/cpu/gemm/micro_dot_packed.h"
#include "engine/ops/cpu/gemm/micro_int8.h"
#include "engine/ops/cpu/gemm/micro_nn.h"
#include "engine/ops/cpu/gemm/micro_nt.h"
#include "engine/ops/cpu/gemm/micro_packed.h"
#include "engine/ops/cpu/kernels/activations.h"
#include "engine/ops/cpu/kernels/dropout.h"
#include "engine/ops/cpu/kernels/norms.h"
#include "engine/ops/cpu/kernels/rows.h"

namespace troupe::engine::ops::cpu::kernels {

template <class V>
constexpr void add_gemm(Kernels& table) {
  table.gemm_nt = gemm_nt<V>;
  table.gemm_nt_few_rows = gemm_nt_few_rows<V>;
  table.gemm_nn = gemm_nn<V>;
  table.gemm_f32_dot = dot_kernel<V>();
  table.gemm_f32 = panel_kernel<V, F32Panel<V>>();
  table.gemm_bf16 = panel_kernel<V, Bf16Panel<V>>();
  table.gemm_int8 = int8_kernel<V, Bf16Panel<V>>();
}

/// Kernels of attention and of the LM head.
template <class V>
constexpr void add_softmax(Kernels& table) {
  table.decode_scores = decode_scores<V>;
  table.decode_values = decode_values<V>;
  table.softmax_sums = softmax_sums<V>;
  table.softmax_in_place = softmax_in_place<V>;
  table.attention_weights = attention_weights<V>;
  table.attention_dscores = attention_dscores<V>;
  table.cap = cap<V>;
  table.cap_backward = cap_backward<V>;
  table.add_alibi_bias = add_alibi_bias<V>;
  table.lm_head_dlogits = lm_head_dlogits<V>;
}

template <class V>
constexpr void add_norms(Kernels& table) {
  table.mean_square = mean_square<V>;
  table.rms_norm = rms_norm<V>;
  table.rms_norm_dx = rms_norm_dx<V>;
  table.rms_norm_dgain = rms_norm_dgain<V>;
  table.mean = mean<V>;
  table.variance = variance<V>;
  table.layer_norm = layer_norm<V>;
  table.layer_norm_dx = layer_norm_dx<V>;
  table.layer_norm_dgain = layer_norm_dgain<V>;
}

template <class V>
constexpr void add_elementwise(Kernels& table) {
  table.rope = rope<V>;
  table.gated = gated<V>;
  table.gated_backward = gated_backward<V>;
  table.activate = activate<V>;
  table.activate_backward = activate_backward<V>;
  table.copy_lines = copy_lines<V>;
  table.add = add<V>;
  table.scale = scale<V>;
  table.dropout = dropout<V>;
  table.adamw = adamw<V>;
}

template <class V>
constexpr void add_reductions(Kernels& table) {
  table.dot = dot<V>;
  table.column_sums = column_sums<V>;
  table.sum_of_squares = sum_of_squares<V>;
  table.all_finite = all_finite<V>;
}

template <class V>
constexpr Kernels table(const char* isa) {
  Kernels all{};
  all.isa = isa;
  add_gemm<V>(all);
  add_softmax<V>(all);
  add_norms<V>(all);
  add_elementwise<V>(all);
  add_reductions<V>(all);
  return all;
}

}  // namespace troupe::engine::ops::cpu::kernels
