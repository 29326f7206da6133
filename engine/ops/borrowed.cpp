#include "engine/ops/borrowed.h"

#include "engine/ops/cpu/host_buffer.h"

namespace troupe::engine::ops {

bool in_host_memory(const Tensor& x) {
  return dynamic_cast<const cpu::HostBuffer*>(x.buffer().get()) != nullptr;
}

Tensor borrow(const SharedArray<float>& values) {
  return {std::make_shared<cpu::HostBuffer>(values.owner(), std::as_bytes(*values)), 0,
          Shape{static_cast<std::int64_t>(values->size())}, DType::f32};
}

SharedArray<float> shared_copy(Device& device, const Tensor& x) {
  const auto buffer =
      std::make_shared<cpu::HostBuffer>(x.bytes(), std::make_shared<cpu::BlockPool>());
  const std::span<float> values(reinterpret_cast<float*>(buffer->data()),
                                static_cast<std::size_t>(x.count()));
  device.download(x, values);
  return {buffer, values};
}

}  // namespace troupe::engine::ops
