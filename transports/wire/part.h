// WireBody: the form of a message between processes. A msgpack header, and raw parts for numeric
// arrays, which are not copied.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace troupe::transports::wire {

/// Bytes and the owner that keeps them alive.
struct BodyPart {
  std::shared_ptr<const void> owner;
  const std::byte* data = nullptr;
  std::size_t size = 0;
};

struct WireBody {
  std::string header;           ///< msgpack; empty without a body
  std::vector<BodyPart> parts;  ///< indexed by the header
};

/// Element type of an array, little-endian. The values are part of the wire format.
enum class Dtype : std::uint8_t { u8 = 1, i8, u16, i16, u32, i32, u64, i64, f32, f64 };
inline constexpr std::uint8_t last_dtype = static_cast<std::uint8_t>(Dtype::f64);
const char* to_string(Dtype dtype);
std::size_t size_of(Dtype dtype);

/// Element types of raw parts: numbers and bytes; not bool, because std::vector<bool> is no array.
template <class T>
concept Number = std::same_as<T, std::byte> ||
    (std::is_arithmetic_v<T> && !std::same_as<T, bool> && sizeof(T) <= 8);

template <Number T>
constexpr Dtype dtype_of() {
  if constexpr (std::same_as<T, std::byte>)
    return Dtype::u8;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? Dtype::f32 : Dtype::f64;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? Dtype::i8 : Dtype::u8;
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? Dtype::i16 : Dtype::u16;
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? Dtype::i32 : Dtype::u32;
  else
    return std::is_signed_v<T> ? Dtype::i64 : Dtype::u64;
}

}  // namespace troupe::transports::wire
