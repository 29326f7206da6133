// Shape checks of the operations, shared by all devices. What does not fit is a Bug.
#pragma once

#include <initializer_list>
#include <string_view>

#include "engine/ops/device.h"

namespace troupe::engine::ops {

inline std::int64_t rows_of(const Tensor& x) {
  return x.shape().rank() == 0 ? 1 : x.shape()[0];
}
/// Number of elements of one row.
inline std::int64_t width_of(const Tensor& x) {
  return x.shape().stride();
}
inline bool is_packed(const Tensor& x) {
  return x.dtype() == DType::bf16_packed || x.dtype() == DType::int8_packed;
}

/// Checks that a host array has one value for each element of `x`; `operation` moves them.
void check_host_values(std::string_view operation, const Tensor& x, std::size_t values);
/// Checks that all have as many elements as the first.
void check_same_size(std::string_view operation, std::initializer_list<const Tensor*> operands);
/// Checks y [T, F] and bias [F].
void check_bias(std::string_view operation, const Tensor& y, const Tensor& bias);
/// Checks a packed weight, of the shape that the device packs it in.
void check_packed(const Tensor& packed, DType type, const Shape& shape);

/// Checks the operands of an operation that moves rows: `each` [M, W] has one row for each of
/// `rows`, which are rows of `table` [., W], or negative.
void check_moved_rows(std::string_view operation, const Tensor& each, const Indices& rows,
                      const Tensor& table);

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

void check_rope(const Tensor& x, const Indices& positions, const Tensor& cos, const Tensor& sin,
                int heads);
void check_gated_backward(const Tensor& gate, const Tensor& up, const Tensor& dy,
                          const Tensor& dgate, const Tensor& dup, const Tensor* y);

void check_dropout(const Tensor& x, const Dropout& how, const Tensor& y);
void check_scale_columns(const Tensor& x, const Tensor& factors);
void check_column_dots(const Tensor& a, const Tensor& b, const Tensor& sums);
void check_row_squares(const Tensor& x, const Tensor& sums);
void check_store_bf16(const Tensor& from, const Tensor& to, const FlatPart& part);

/// Checks every size and index that attention uses.
void check_attention(const AttentionInputs& in, const Tensor& out, const Tensor* lse);
void check_attention_backward(const AttentionInputs& in, const AttentionBackward& with);

/// Checks the operands of head(), with its adapter: down [T, R], up [V, R].
void check_head(const HeadInputs& in);
void check_targets(const TargetRows& of, std::int64_t rows, std::int64_t vocabulary);
/// Checks logits [M, V], one target a row, logp and lse [M], and the mask of the columns.
void check_token_logprob(const Tensor& logits, const Indices& targets, const Tensor& logp,
                         const Tensor& lse, const ColumnMask* columns);
/// Checks logits [M, V], one way to sample a row, logp and lse [M], both or none.
void check_sample(const Tensor& logits, const SamplingRows& rows, const SamplingOutputs& out);
/// Checks that logp, lse and entropy are [T].
void check_head_outputs(const HeadInputs& in, const HeadOutputs& out);
/// Checks upstream gradients, gradients and the entropy that dentropy requires.
void check_head_gradients(const HeadInputs& in, const HeadUpstream& up, const Tensor* entropy,
                          const HeadGradients& to);

}  // namespace troupe::engine::ops
