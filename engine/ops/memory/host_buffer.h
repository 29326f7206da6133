// Host memory of a Tensor, for devices that compute in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/ops/memory/block_pool.h"
#include "engine/tensor/tensor.h"

namespace troupe::engine::ops {

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
  std::byte* host_pointer() const override { return block_.data; }

 private:
  std::shared_ptr<BlockPool> pool_;  ///< of the block; nullptr: it is the owner's
  std::shared_ptr<const void> owner_;
  BlockPool::Block block_;
};

inline std::byte* raw(const Tensor& x) {
  check(static_cast<bool>(x), "an operand is absent");
  std::byte* const memory = x.buffer()->host_pointer();
  check(memory != nullptr || x.bytes() == 0, "an operand lives on another device");
  return memory + x.offset_bytes();
}

inline const float* data(const Tensor& x) {
  check(x.dtype() == DType::f32, "an operand is not f32");
  return reinterpret_cast<const float*>(raw(x));
}
inline float* mutable_data(Tensor& x) {
  check(x.dtype() == DType::f32, "a result is not f32");
  return reinterpret_cast<float*>(raw(x));
}

inline std::int32_t* i32_data(const Tensor& x) {
  check(x.dtype() == DType::i32, "an operand is not i32");
  return reinterpret_cast<std::int32_t*>(raw(x));
}

inline const std::uint16_t* bf16_data(const Tensor& x) {
  check(x.dtype() == DType::bf16, "an operand is not bf16");
  return reinterpret_cast<const std::uint16_t*>(raw(x));
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

}  // namespace troupe::engine::ops
