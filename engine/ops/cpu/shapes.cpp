// What the operands of an operation must satisfy, checked once for both CPU devices; and AdamW's
// scalars.
#include <algorithm>
#include <cmath>

#include "engine/base/text.h"
#include "engine/ops/cpu/access.h"
#include "engine/ops/cpu/host_device.h"
#include "engine/ops/cpu/kernels.h"

namespace troupe::engine::ops {

void check_moved_rows(std::string_view operation, const Tensor& each,
                      std::span<const std::int32_t> rows, const Tensor& table) {
  const bool fit =
      width_of(each) == width_of(table) && rows_of(each) == static_cast<std::int64_t>(rows.size());
  if (!fit) check(false, cat(operation, ": shapes"));
  const bool inside =
      std::ranges::all_of(rows, [&](std::int32_t row) { return row < rows_of(table); });
  if (!inside) check(false, cat(operation, ": a row beyond the table"));
}

GemmSizes gemm_sizes(const Tensor& a, const Tensor& b, const Tensor& c, Gemm how) {
  check(a.shape().rank() == 2 && b.shape().rank() == 2 && c.shape().rank() == 2,
        "gemm: operands are matrices");
  const GemmSizes sizes{c.shape()[0], c.shape()[1], a.shape()[how.transpose_a ? 0 : 1]};
  check(a.shape()[how.transpose_a ? 1 : 0] == sizes.m, "gemm: rows of A and C differ");
  if (is_packed(b)) {
    check(how.transpose_b && how.precision == Precision::bf16,
          "gemm: a packed weight is for products x W^T in bf16");
    check(!how.accumulate || b.dtype() == DType::bf16_packed,
          "gemm: a product with a weight in int8 does not accumulate");
    return sizes;
  }
  check(b.shape()[how.transpose_b ? 0 : 1] == sizes.n, "gemm: columns of B and C differ");
  check(b.shape()[how.transpose_b ? 1 : 0] == sizes.k, "gemm: inner sizes of A and B differ");
  return sizes;
}

void check_norm(const Tensor& x, const Tensor& gain, const Tensor& y, const Tensor& inverse) {
  check(width_of(x) == gain.count() && y.count() == x.count() && inverse.count() == rows_of(x),
        "a norm: x, y [T, D], gain [D], one inverse a row");
}

void check_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& inverse,
                         const Tensor& dy, const Tensor& dx, const Tensor& dgain) {
  check_norm(x, gain, dy, inverse);
  check(dx.count() == x.count() && dgain.count() == gain.count(),
        "a norm's backward: dx [T, D], dgain [D]");
}

void check_layer_norm(const Tensor& gain, const Tensor& bias, const Tensor& mean,
                      const Tensor& inverse) {
  check(mean.count() == inverse.count() && (!bias || bias.count() == gain.count()),
        "layer_norm: mean [T], bias [D]");
}

namespace {

void check_pages(const KeyValues& kv, std::size_t n, std::int64_t keys) {
  const auto& pages = kv.pages[n];
  const std::int64_t needed = (keys + kv.page_size - 1) / kv.page_size;
  check(needed <= static_cast<std::int64_t>(pages.size()), "attention: a sequence lacks pages");
  for (std::int64_t i = 0; i < needed; ++i) {
    const std::int64_t page = pages[static_cast<std::size_t>(i)];
    check(page >= 0 && (page + 1) * kv.page_size <= rows_of(kv.k),
          "attention: a page outside the cache");
  }
}

}  // namespace

void check_attention(const Tensor& q, const KeyValues& kv, const Layout& layout,
                     const AttentionShape& shape) {
  check(shape.kv_heads > 0 && shape.head_size > 0 && shape.heads > 0 &&
            shape.heads % shape.kv_heads == 0,
        "attention: heads");
  check(shape.window >= 0 && shape.softcap >= 0, "attention: window and softcap");
  check(shape.slopes.empty() || static_cast<int>(shape.slopes.size()) == shape.heads,
        "attention: one slope a head");
  check(rows_of(q) == layout.rows() && q.count() == rows_of(q) * shape.heads * shape.head_size,
        "attention: q is not [T, H*K]");
  const std::int64_t width = std::int64_t{shape.kv_heads} * shape.head_size;
  check(width_of(kv.k) == width && width_of(kv.v) == width && rows_of(kv.k) == rows_of(kv.v),
        "attention: k, v are not [rows, G*K]");
  check(static_cast<std::int32_t>(layout.positions.size()) == layout.rows(),
        "attention: one position a row");
  check(layout.offsets.empty() || layout.offsets.front() == 0, "attention: offsets start at 0");
  check(kv.page_size >= 0, "attention: page size");
  check(kv.page_size == 0 || static_cast<std::int32_t>(kv.pages.size()) >= layout.sequences(),
        "attention: a sequence has no page list");
  for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n) {
    const std::int32_t begin = layout.offsets[n], end = layout.offsets[n + 1];
    check(begin <= end, "attention: offsets decrease");
    std::int64_t keys = 0;
    for (std::int32_t t = begin; t < end; ++t) {
      const std::int32_t position = layout.positions[static_cast<std::size_t>(t)];
      check(position >= 0, "attention: a negative position");
      if (position >= keys) keys = std::int64_t{position} + 1;
    }
    if (kv.page_size > 0) {
      check_pages(kv, n, keys);
    } else {
      check(keys <= end - begin && end <= rows_of(kv.k),
            "attention: a row sees keys beyond its sequence");
    }
  }
}

void check_targets(std::span<const std::int32_t> targets, std::int64_t rows,
                   std::int64_t vocabulary) {
  check(static_cast<std::int64_t>(targets.size()) == rows, "head: one target a row");
  for (const std::int32_t target : targets)
    check(target >= target_elsewhere && target < vocabulary,
          "head: a target outside the vocabulary");
}

void check_head(const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets) {
  check(hidden.shape().rank() == 2 && weight.shape().rank() == 2 &&
            hidden.shape()[1] == weight.shape()[1],
        "head: hidden [T, D], weight [V, D]");
  check_targets(targets, hidden.shape()[0], weight.shape()[0]);
}

void check_head_scores(std::span<const std::int32_t> targets, const Tensor& logp, const Tensor& lse,
                       const Tensor* entropy) {
  const auto count = static_cast<std::int64_t>(targets.size());
  check(logp.count() == count && lse.count() == count &&
            (entropy == nullptr || entropy->count() == count),
        "head: logp, lse, entropy [T]");
}

void check_head_gradients(const Tensor& hidden, const Tensor& weight,
                          std::span<const std::int32_t> targets, const Tensor& dlogp,
                          const Tensor* dentropy, const Tensor* entropy, const Tensor& dhidden,
                          const Tensor& dweight) {
  const auto count = static_cast<std::int64_t>(targets.size());
  check(dlogp.count() == count, "head: dlogp [T]");
  check(dentropy == nullptr ||
            (entropy != nullptr && entropy->count() == count && dentropy->count() == count),
        "head: entropy [T]");
  check(dhidden.count() == hidden.count() && (!dweight || dweight.count() == weight.count()),
        "head: gradients");
}

AdamWScalars::AdamWScalars(const AdamW& how) {
  check(how.step >= 1, "adamw: steps count from 1");
  const double correction1 = 1 - std::pow(how.beta1, static_cast<double>(how.step));
  const double correction2 = 1 - std::pow(how.beta2, static_cast<double>(how.step));
  decay = static_cast<float>(1 - how.learning_rate * how.weight_decay);
  one_minus_beta1 = static_cast<float>(1 - how.beta1);
  beta2 = static_cast<float>(how.beta2);
  one_minus_beta2 = static_cast<float>(1 - how.beta2);
  sqrt_correction2 = static_cast<float>(std::sqrt(correction2));
  eps = static_cast<float>(how.eps);
  step_size = static_cast<float>(how.learning_rate / correction1);
  grad_scale = how.grad_scale;
  clear_gradients = how.clear_gradients;
}

}  // namespace troupe::engine::ops
