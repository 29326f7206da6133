// Shape checks of the operations, shared by both CPU devices.
#pragma once

#include <string_view>

#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu {

/// Checks the operands of an operation that moves rows: `each` [M, W] has one row for each of
/// `rows`, which are rows of `table` [., W], or negative.
void check_moved_rows(std::string_view operation, const Tensor& each,
                      std::span<const std::int32_t> rows, const Tensor& table);

/// Sizes of a product.
struct GemmSizes {
  std::int64_t m, n, k;
};
/// Returns the sizes of a product, after checking its operands. B may be a packed weight, whose
/// shape the device checks.
GemmSizes gemm_sizes(const Tensor& a, const Tensor& b, const Tensor& c, Gemm how);

/// Checks the operands of a norm: x, y [T, D], gain [D], inverse (of the root mean square or of the
/// standard deviation) [T].
void check_norm(const Tensor& x, const Tensor& gain, const Tensor& y, const Tensor& inverse);
void check_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& inverse,
                         const Tensor& dy, const Tensor& dx, const Tensor& dgain);
/// Checks the operands specific to layer_norm: bias [D] or absent, mean [T].
void check_layer_norm(const Tensor& gain, const Tensor& bias, const Tensor& mean,
                      const Tensor& inverse);

void check_rope(const Tensor& x, std::span<const std::int32_t> positions, const Tensor& cos,
                const Tensor& sin, int heads);
void check_gated_backward(const Tensor& gate, const Tensor& up, const Tensor& dy,
                          const Tensor& dgate, const Tensor& dup, const Tensor* y);

/// Checks every size and index that attention uses.
void check_dropout(const Tensor& x, const Dropout& how, const Tensor& y);
void check_attention(const AttentionInputs& in, const Tensor& out, const Tensor* lse);
void check_attention_backward(const AttentionInputs& in, const AttentionBackward& with);

/// Checks the operands of head(), with its adapter: down [T, R], up [V, R].
void check_head(const HeadInputs& in);
void check_targets(std::span<const std::int32_t> targets, std::int64_t rows,
                   std::int64_t vocabulary);
/// Checks that logp, lse and entropy are [T].
void check_head_outputs(const HeadInputs& in, const HeadOutputs& out);
/// Checks upstream gradients, gradients and the entropy that dentropy requires.
void check_head_gradients(const HeadInputs& in, const HeadUpstream& up, const Tensor* entropy,
                          const HeadGradients& to);

}  // namespace troupe::engine::ops::cpu
