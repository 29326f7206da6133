#include "engine/ops/host_values.h"

#include <utility>

#include "engine/base/check.h"
#include "engine/ops/cpu/host_buffer.h"

namespace troupe::engine::ops {

HostValues::HostValues(Device& device, Tensor x) : device_(device), tensor_(std::move(x)) {
  device_.synchronize();
  const auto count = static_cast<std::size_t>(tensor_.count());
  const auto* host = cpu::host_buffer(tensor_);
  if (host != nullptr && tensor_.dtype() == DType::f32) {
    values_ = {reinterpret_cast<float*>(host->data() + tensor_.offset_bytes()), count};
    return;
  }
  copy_.resize(count);
  device_.download(tensor_, copy_);
  values_ = copy_;
}

void HostValues::store() {
  if (!copy_.empty()) device_.upload(tensor_, copy_);
}

}  // namespace troupe::engine::ops
