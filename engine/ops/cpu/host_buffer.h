// Host memory of a Tensor, for the devices of engine/ops/cpu only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <typeinfo>
#include <utility>

#include "engine/base/check.h"
#include "engine/ops/cpu/memory/block_pool.h"
#include "engine/tensor/tensor.h"

namespace troupe::engine::ops::cpu {

/// Memory of a Tensor. It may outlive the device.
class HostBuffer final : public Buffer {
 public:
  /// A block of the pool. Failure(full) if the machine has no memory.
  HostBuffer(std::size_t bytes, std::shared_ptr<BlockPool> pool)
      : Buffer(bytes), pool_(std::move(pool)), block_(pool_->take(bytes)) {}
  /// Memory of another owner, which stays as it is while `owner` lives. A Tensor of it is only
  /// read.
  HostBuffer(std::shared_ptr<const void> owner, std::span<const std::byte> memory)
      : Buffer(memory.size()),
        owner_(std::move(owner)),
        block_{const_cast<std::byte*>(memory.data()), memory.size()} {}
  ~HostBuffer() override {
    if (pool_) pool_->give_back(block_);
  }
  std::byte* data() const { return block_.data; }

 private:
  std::shared_ptr<BlockPool> pool_;  ///< of the block; nullptr: it is the owner's
  std::shared_ptr<const void> owner_;
  BlockPool::Block block_;
};

/// nullptr: the tensor is absent or lives on another device. A dynamic_cast to a final class, in a
/// tenth of its instructions.
inline const HostBuffer* host_buffer(const Tensor& x) {
  const Buffer* const buffer = x.buffer().get();
  const bool is_host = buffer != nullptr && typeid(*buffer) == typeid(HostBuffer);
  return is_host ? static_cast<const HostBuffer*>(buffer) : nullptr;
}

inline std::byte* raw(const Tensor& x) {
  check(static_cast<bool>(x), "an operand is absent");
  const HostBuffer* const buffer = host_buffer(x);
  check(buffer != nullptr, "an operand lives on another device");
  return buffer->data() + x.offset_bytes();
}

inline const float* data(const Tensor& x) {
  check(x.dtype() == DType::f32, "an operand is not f32");
  return reinterpret_cast<const float*>(raw(x));
}
inline float* mutable_data(Tensor& x) {
  check(x.dtype() == DType::f32, "a result is not f32");
  return reinterpret_cast<float*>(raw(x));
}

inline const std::uint16_t* bf16_data(const Tensor& x) {
  check(x.dtype() == DType::bf16, "an operand is not bf16");
  return reinterpret_cast<const std::uint16_t*>(raw(x));
}

inline std::int64_t rows_of(const Tensor& x) {
  return x.shape().rank() == 0 ? 1 : x.shape()[0];
}
/// Number of elements of one row.
inline std::int64_t width_of(const Tensor& x) {
  return x.shape().stride();
}

inline bool is_packed(const Tensor& x) {
  return x.dtype() == DType::bf16_packed || x.dtype() == DType::int8_packed;
}

/// Rounds to the nearest bf16, ties to even. NaN stays NaN.
inline std::uint16_t to_bf16(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}
inline float from_bf16(std::uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

/// Rounds to the nearest value of f16 (IEEE 754 binary16), ties to even: 65520 or more to infinity,
/// below 2^-14 to a multiple of 2^-24. NaN stays NaN. Free of branches, so that loops are
/// vectorized.
inline float to_f16_value(float value) {
  constexpr float smallest_normal = 0x1p-14F, largest = 65504, multiple_of_quantum = 0.75F;
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const float size = __builtin_fabsf(value);
  const float normal =
      __builtin_bit_cast(float, ((bits & 0x7fffffffU) + 0xfffU + ((bits >> 13) & 1U)) & ~0x1fffU);
  const float subnormal = (size + multiple_of_quantum) - multiple_of_quantum;
  const float near = size < smallest_normal ? subnormal : normal;
  const float finite = near > largest ? __builtin_inff() : near;
  return __builtin_copysignf(__builtin_isnan(value) ? value : finite, value);
}

}  // namespace troupe::engine::ops::cpu
