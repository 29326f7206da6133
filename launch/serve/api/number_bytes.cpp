#include "launch/serve/api/number_bytes.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/checkpoint/half.h"

namespace troupe::launch::serve::api {

namespace {

struct F8 {
  int mantissa, bias;
  std::uint32_t largest;  ///< bits of the largest finite number; the next ones are none
};

/// Also subnormal numbers. Where the magnitude rounds to more than the largest number, the result
/// is the next bits, infinity or not a number.
std::uint32_t to_f8(float value, const F8& type) {
  const std::uint32_t sign = std::signbit(value) ? 0x80U : 0U;
  const float size = std::abs(value);
  if (std::isnan(value)) return sign | 0x7FU;
  if (size >= 0x1p20F) return sign | (type.largest + 1);
  const int exponent = std::max(size > 0 ? std::ilogb(size) : 1 - type.bias, 1 - type.bias);
  const auto steps =
      static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, type.mantissa - exponent)));
  const auto offset = static_cast<std::uint32_t>(exponent + type.bias - 1) << type.mantissa;
  return sign | std::min(offset + steps, type.largest + 1);
}

int bits_in(NumberType type) {
  constexpr int bits[] = {32, 16, 16, 8, 8};
  return bits[static_cast<int>(type)];
}

std::uint32_t bits_of(float value, NumberType type) {
  switch (type) {
    case NumberType::f16:
      return engine::checkpoint::float_to_f16(value);
    case NumberType::bf16:
      return engine::checkpoint::float_to_bf16(value);
    case NumberType::f8_e4m3:
      return to_f8(value, {.mantissa = 3, .bias = 7, .largest = 0x7E});
    case NumberType::f8_e5m2:
      return to_f8(value, {.mantissa = 2, .bias = 15, .largest = 0x7B});
    case NumberType::f32:
      break;
  }
  return std::bit_cast<std::uint32_t>(value);
}

}  // namespace

std::string bytes_of(std::span<const float> values, const NumberFormat& format) {
  const int bits = bits_in(format.type);
  std::string bytes;
  for (const float value : values) {
    const std::uint32_t word = bits_of(value, format.type);
    for (int shift = 0; shift < bits; shift += 8)
      bytes += static_cast<char>(word >> (format.big_endian ? bits - 8 - shift : shift) & 0xFFU);
  }
  return bytes;
}

}  // namespace troupe::launch::serve::api
