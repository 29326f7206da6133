#include "engine/ops/host_values.h"

#include <utility>

#include "engine/base/errors/check.h"

namespace troupe::engine::ops {

HostValues::HostValues(Device& device, Tensor x) : device_(device), tensor_(std::move(x)) {
  device_.synchronize();
  const auto count = static_cast<std::size_t>(tensor_.count());
  std::byte* const host = tensor_ ? tensor_.buffer()->host_pointer() : nullptr;
  if (host != nullptr && tensor_.dtype() == DType::f32) {
    values_ = {reinterpret_cast<float*>(host + tensor_.offset_bytes()), count};
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
