#include "engine/ops/work.h"

#include <algorithm>

namespace troupe::engine::ops {
namespace {

double bytes_of(std::initializer_list<const Tensor*> operands) {
  double bytes = 0;
  for (const Tensor* x : operands)
    if (*x) bytes += static_cast<double>(x->bytes());
  return bytes;
}

/// Keys that all rows see together, and those that must be read for it.
struct Keys {
  double seen = 0, read = 0;
};

Keys keys_of(const Layout& layout, int window) {
  Keys keys;
  for (std::int32_t n = 0; n < layout.sequences(); ++n) {
    const auto begin = layout.offsets[static_cast<std::size_t>(n)],
               end = layout.offsets[static_cast<std::size_t>(n) + 1];
    std::int32_t first = 0, last = -1;
    for (auto t = begin; t < end; ++t) {
      const std::int32_t position = layout.positions[static_cast<std::size_t>(t)];
      const std::int32_t from = window > 0 ? std::max(0, position - window + 1) : 0;
      keys.seen += position - from + 1;
      first = t == begin ? from : std::min(first, from);
      last = std::max(last, position);
    }
    keys.read += last - first + 1;
  }
  return keys;
}

/// `products`: of a query and a key, or as large; `queries`, `keys`: arrays like q, and like the
/// keys that are read, that are moved.
Work attention_with(double products, double queries, double keys, const Tensor& q,
                    const Layout& layout, const AttentionShape& shape, Precision precision) {
  const Keys found = keys_of(layout, shape.window);
  const double size = shape.head_size;
  return {
      .flops = 2 * products * shape.heads * size * found.seen,
      .bytes = queries * bytes_of({&q}) + keys * shape.kv_heads * size * sizeof(float) * found.read,
      .bf16 = precision == Precision::bf16};
}

double rows_with_target(std::span<const std::int32_t> targets) {
  return static_cast<double>(
      std::ranges::count_if(targets, [](std::int32_t target) { return target != no_target; }));
}

/// Multiplications and additions of one product over the vocabulary.
double one_product(const Tensor& weight, std::span<const std::int32_t> targets) {
  return 2 * rows_with_target(targets) * static_cast<double>(weight.count());
}
double adapter_product(const HeadAdapter* adapter, std::span<const std::int32_t> targets) {
  return adapter && adapter->up ? one_product(adapter->up, targets) : 0;
}

}  // namespace

Work gemm_work(const Tensor& a, const Tensor& b, const Tensor& c, Gemm how) {
  const double rows = static_cast<double>(c.shape()[0]),
               inner = rows > 0 ? static_cast<double>(a.count()) / rows : 0;
  return {.flops = 2 * static_cast<double>(c.count()) * inner,
          .bytes = bytes_of({&a, &b, &c}) + (how.accumulate ? bytes_of({&c}) : 0),
          .bf16 = how.precision == Precision::bf16};
}

Work gemms_work(std::span<const GemmCall> calls) {
  Work sum;
  for (const GemmCall& call : calls) {
    const Work one = gemm_work(call.a, call.b, call.c, call.how);
    sum.flops += one.flops, sum.bytes += one.bytes, sum.bf16 = one.bf16;
  }
  return sum;
}

Work attention_work(const Tensor& q, const Layout& layout, const AttentionShape& shape,
                    Precision precision) {
  return attention_with(2, 2, 2, q, layout, shape, precision);  // q, out; k, v
}

Work attention_backward_work(const Tensor& q, const Layout& layout, const AttentionShape& shape,
                             Precision precision) {
  return attention_with(5, 4, 4, q, layout, shape, precision);  // q, out, dout, dq; k, v, dk, dv
}

Work head_work(const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets,
               Precision precision, const HeadAdapter* adapter) {
  return {.flops = one_product(weight, targets) + adapter_product(adapter, targets),
          .bytes = bytes_of({&hidden, &weight}),
          .bf16 = precision == Precision::bf16};
}

Work head_backward_work(const Tensor& hidden, const Tensor& weight,
                        std::span<const std::int32_t> targets, Precision precision,
                        const Tensor& dweight, const HeadAdapter* adapter, bool has_logits) {
  const double again = has_logits ? 0 : 1, products = again + (dweight ? 2 : 1);
  return {.flops = products * one_product(weight, targets) +
                   (again + 2) * adapter_product(adapter, targets),
          .bytes = 2 * bytes_of({&hidden}) + bytes_of({&weight}) + 2 * bytes_of({&dweight}),
          .bf16 = precision == Precision::bf16};
}

}  // namespace troupe::engine::ops
