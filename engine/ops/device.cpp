#include "engine/ops/device.h"

namespace troupe::engine::ops {

void Device::grouped_gemm(std::span<GemmCall> calls) {
  for (GemmCall& call : calls) gemm(call.a, call.b, call.c, call.how);
}

void Device::head_through(const Tensor& hidden, const Tensor& weight,
                          std::span<const std::int32_t> targets, const HeadScale& scale,
                          Precision precision, const Tensor& dlogp, const Tensor* dentropy,
                          Tensor& logp, Tensor& lse, Tensor* entropy, Tensor& dhidden,
                          Tensor& dweight, HeadAdapter* adapter, bool accumulate) {
  head(hidden, weight, targets, scale, precision, logp, lse, entropy, adapter);
  head_backward(hidden, weight, targets, scale, precision, lse, dlogp, dentropy, entropy, dhidden,
                dweight, adapter, nullptr, accumulate);
}

std::vector<float> to_host(Device& device, const Tensor& from) {
  std::vector<float> values(static_cast<std::size_t>(from.count()));
  device.synchronize();
  device.download(from, values);
  return values;
}

Tensor from_host(Device& device, Shape shape, std::span<const float> values) {
  Tensor to = device.empty(shape);
  device.upload(to, values);
  return to;
}

}  // namespace troupe::engine::ops
