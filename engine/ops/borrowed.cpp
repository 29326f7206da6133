#include "engine/ops/borrowed.h"

#include "engine/ops/memory/host_buffer.h"

namespace troupe::engine::ops {

bool in_host_memory(const Tensor& x) {
  return x && x.buffer()->host_pointer() != nullptr;
}

Tensor borrow(const SharedArray<float>& values) {
  return {std::make_shared<HostBuffer>(values.owner(), std::as_bytes(*values)), 0,
          Shape{static_cast<std::int64_t>(values->size())}, DType::f32};
}

HostArray host_array(std::int64_t count) {
  const auto buffer = std::make_shared<HostBuffer>(static_cast<std::size_t>(count) * sizeof(float),
                                                   std::make_shared<BlockPool>());
  return {buffer,
          {reinterpret_cast<float*>(buffer->host_pointer()), static_cast<std::size_t>(count)}};
}

SharedArray<float> shared_copy(Device& device, const Tensor& x) {
  const HostArray copy = host_array(x.count());
  device.download(x, copy.values);
  return {copy.owner, copy.values};
}

}  // namespace troupe::engine::ops
