#include "engine/ops/device.h"

namespace troupe::engine::ops {

void Device::grouped_gemm(std::span<GemmCall> calls) {
  for (GemmCall& call : calls) gemm(call.a, call.b, call.c, call.how);
}

void Device::head_forward_backward(const HeadInputs& in, const HeadUpstream& up,
                                   const HeadOutputs& out, const HeadGradients& to) {
  head(in, {out.logp, out.lse, out.entropy});
  head_backward(in, {out.lse, out.entropy}, up, to);
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
