// The element types of safetensors files (huggingface/safetensors: safetensors/src/tensor.rs, enum
// Dtype).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe::engine::checkpoint {

/// An element type. Only floating-point types and integers are converted; of the others only the
/// size is used.
enum class StoredType : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};

/// Name in the header: "F32", "BF16", ...
std::string_view to_string(StoredType type);
/// The type that a header's "dtype" names.
std::optional<StoredType> stored_type(std::string_view name);
/// Bits of one element: 4, 6, 8, 16, 32 or 64.
unsigned bits_of(StoredType type);

}  // namespace troupe::engine::checkpoint
