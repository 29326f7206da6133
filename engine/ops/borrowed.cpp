#include "engine/ops/borrowed.h"

#include "engine/ops/cpu/host_buffer.h"

namespace troupe::engine::ops {

bool in_host_memory(const Tensor& x) {
  return cpu::host_buffer(x) != nullptr;
}

Tensor borrow(const SharedArray<float>& values) {
  return {std::make_shared<cpu::HostBuffer>(values.owner(), std::as_bytes(*values)), 0,
          Shape{static_cast<std::int64_t>(values->size())}, DType::f32};
}

HostArray host_array(std::int64_t count) {
  const auto buffer = std::make_shared<cpu::HostBuffer>(
      static_cast<std::size_t>(count) * sizeof(float), std::make_shared<cpu::BlockPool>());
  return {buffer, {reinterpret_cast<float*>(buffer->data()), static_cast<std::size_t>(count)}};
}

SharedArray<float> shared_copy(Device& device, const Tensor& x) {
  const HostArray copy = host_array(x.count());
  device.download(x, copy.values);
  return {copy.owner, copy.values};
}

}  // namespace troupe::engine::ops
