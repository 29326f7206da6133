#include "engine/ops/device.h"

namespace troupe::engine::ops {

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
