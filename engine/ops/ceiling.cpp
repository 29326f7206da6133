#include "engine/ops/ceiling.h"

#include <algorithm>
#include <chrono>

namespace troupe::engine::ops {
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
