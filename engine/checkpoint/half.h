// Bit conversions between float and the two 16-bit formats of checkpoints: bfloat16 and IEEE 754
// binary16. Widening is exact; narrowing rounds to nearest, ties to even. Payloads of NaN survive a
// trip out and back.
#pragma once

#include <bit>
#include <cstdint>

namespace troupe::engine::checkpoint {

inline float bf16_to_float(std::uint16_t half) {
  return std::bit_cast<float>(std::uint32_t{half} << 16);
}

inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) >
      0x7F800000u) {  // a NaN whose payload lies in the lost bits must not become infinity
    const auto top = static_cast<std::uint16_t>(bits >> 16);
    return (top & 0x7Fu) ? top : static_cast<std::uint16_t>(top | 0x40u);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline float f16_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, mantissa = half & 0x3FFu;
  const std::uint32_t exponent = (half >> 10) & 0x1Fu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float tiny = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal: exact in float
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(tiny));
}

inline std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) {
    const std::uint32_t payload = (magnitude >> 13) & 0x3FFu;
    return static_cast<std::uint16_t>(sign | 0x7C00u | (payload ? payload : 0x200u));
  }
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // 2^16 and up
  if (magnitude < 0x38800000u) {  // below 2^-14: a multiple of 2^-24
    // Adding 0.5 leaves exactly the ten bits of a subnormal half in the mantissa, rounded to
    // nearest even by the adder.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3F000000u));
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace troupe::engine::checkpoint
