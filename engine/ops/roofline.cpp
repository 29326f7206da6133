#include "engine/ops/roofline.h"

#include <algorithm>
#include <chrono>

namespace troupe::engine::ops {

namespace {

double bytes_of(std::initializer_list<const Tensor*> operands) {
  double bytes = 0;
  for (const Tensor* x : operands)
    if (*x) bytes += static_cast<double>(x->bytes());
  return bytes;
}

/// Number of keys that all rows see, and of keys that must be read.
struct KeyCounts {
  double seen = 0, read = 0;
};

KeyCounts count_keys(const KeyValues& kv, const Layout& layout, int window) {
  KeyCounts keys;
  for (std::int32_t n = 0; n < layout.sequences(); ++n) {
    const auto begin = layout.offsets[static_cast<std::size_t>(n)],
               end = layout.offsets[static_cast<std::size_t>(n) + 1];
    std::int32_t first = 0, last = -1;
    for (auto t = begin; t < end; ++t) {
      std::int32_t position = layout.positions[static_cast<std::size_t>(t)];
      std::int32_t from = window > 0 ? std::max(0, position - window + 1) : 0;
      if (!kv.blocks.empty()) {
        const KeyBlock& block = kv.blocks[static_cast<std::size_t>(n)];
        from = std::max(from, static_cast<std::int32_t>(block.first));
        position = std::min(position, static_cast<std::int32_t>(block.end - 1));
      }
      keys.seen += position - from + 1;
      first = t == begin ? from : std::min(first, from);
      last = std::max(last, position);
    }
    keys.read += last - first + 1;
  }
  return keys;
}

/// `products`: products of the size of q k^T; `queries`, `keys`: tensors of the size of q, and of
/// the keys that are read, that are moved.
Work attention_with(double products, double queries, double keys, const AttentionInputs& in) {
  const KeyCounts found = count_keys(in.kv, in.layout, in.shape.window);
  const double size = in.shape.head_size;
  return {.flops = 2 * products * in.shape.heads * size * found.seen,
          .bytes = queries * bytes_of({&in.q}) +
                   keys * in.shape.kv_heads * size * sizeof(float) * found.read,
          .bf16 = in.precision == Precision::bf16};
}

double rows_with_target(const Indices& targets) {
  return static_cast<double>(
      std::ranges::count_if(targets.host, [](std::int32_t target) { return target != no_target; }));
}

/// Floating-point operations of one product over the vocabulary.
double one_product(const Tensor& weight, const Indices& targets) {
  return 2 * rows_with_target(targets) * static_cast<double>(weight.count());
}
double adapter_product(const HeadAdapter* adapter, const Indices& targets) {
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
    sum.flops += one.flops;
    sum.bytes += one.bytes;
    sum.bf16 = one.bf16;
  }
  return sum;
}

Work attention_work(const AttentionInputs& in) {
  return attention_with(2, 2, 2, in);  // q, out; k, v
}

Work attention_backward_work(const AttentionInputs& in) {
  return attention_with(5, 4, 4, in);  // q, out, dout, dq; k, v, dk, dv
}

Work head_work(const HeadInputs& in) {
  return {.flops = one_product(in.weight, in.targets) + adapter_product(in.adapter, in.targets),
          .bytes = bytes_of({&in.hidden, &in.weight}),
          .bf16 = in.precision == Precision::bf16};
}

Work head_backward_work(const HeadInputs& in, const Tensor& dweight, bool has_logits) {
  const double again = has_logits ? 0 : 1, products = again + (dweight ? 2 : 1);
  return {.flops = products * one_product(in.weight, in.targets) +
                   (again + 2) * adapter_product(in.adapter, in.targets),
          .bytes = 2 * bytes_of({&in.hidden}) + bytes_of({&in.weight}) + 2 * bytes_of({&dweight}),
          .bf16 = in.precision == Precision::bf16};
}

namespace {

/// Returns the shortest of three runs.
template <class Call>
double seconds_of(Device& device, const Call& call) {
  double best = 1e300;
  for (int i = 0; i < 3; ++i) {
    const auto began = std::chrono::steady_clock::now();
    call();
    device.synchronize();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  return std::max(best, 1e-9);
}

Tensor filled(Device& device, Shape shape) {
  Tensor x = device.empty(shape);
  device.fill(x, 0.5F);
  return x;
}

/// Returns the FLOP/s of the largest square product that does not take long.
double product_rate(Device& device, Precision precision) {
  double rate = 0;
  for (const std::int64_t size : {256, 512, 1024, 2048}) {
    const Tensor a = filled(device, {size, size}), b = filled(device, {size, size});
    Tensor c = device.empty({size, size});
    const double seconds = seconds_of(
        device, [&] { device.gemm(a, b, c, {.transpose_b = true, .precision = precision}); });
    rate = std::max(rate, 2 * static_cast<double>(size * size * size) / seconds);
    if (seconds > 0.01) break;
  }
  return rate;
}

double read_rate(Device& device) {
  const Tensor x = filled(device, {std::int64_t{1} << 25});
  return static_cast<double>(x.bytes()) / seconds_of(device, [&] { device.all_finite(x); });
}

}  // namespace

double Ceiling::seconds(const Work& work) const {
  const double flops = work.bf16 && bf16_flops > 0 ? bf16_flops : f32_flops;
  return std::max(flops > 0 ? work.flops / flops : 0, read_bytes > 0 ? work.bytes / read_bytes : 0);
}

Ceiling measure_ceiling(Device& device, bool bf16) {
  return {.f32_flops = product_rate(device, Precision::f32),
          .bf16_flops = bf16 ? product_rate(device, Precision::bf16) : 0,
          .read_bytes = read_rate(device)};
}

}  // namespace troupe::engine::ops
