// NumberBytes: numbers of answers as base64.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace troupe::launch::api {

enum class NumberType : std::uint8_t { f32, f16, bf16 };

/// How numbers are written: as JSON numbers, or the bytes of a type as base64.
struct NumberFormat {
  bool base64 = false;
  NumberType type = NumberType::f32;  ///< rounded to nearest, ties to even
  bool big_endian = false;
};

/// RFC 4648, of the bytes of all numbers.
std::string base64(std::span<const float> values, const NumberFormat& format);

}  // namespace troupe::launch::api
