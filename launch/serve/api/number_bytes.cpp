#include "launch/serve/api/number_bytes.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "engine/checkpoint/half.h"

namespace troupe::launch::api {

namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::uint32_t bits_of(float value, NumberType type) {
  switch (type) {
    case NumberType::f16:
      return engine::checkpoint::float_to_f16(value);
    case NumberType::bf16:
      return engine::checkpoint::float_to_bf16(value);
    case NumberType::f32:
      break;
  }
  return std::bit_cast<std::uint32_t>(value);
}

std::string bytes_of(std::span<const float> values, const NumberFormat& format) {
  const int bits = format.type == NumberType::f32 ? 32 : 16;
  std::string bytes;
  for (const float value : values) {
    const std::uint32_t word = bits_of(value, format.type);
    for (int shift = 0; shift < bits; shift += 8)
      bytes += static_cast<char>(word >> (format.big_endian ? bits - 8 - shift : shift) & 0xFFU);
  }
  return bytes;
}

}  // namespace

std::string base64(std::span<const float> values, const NumberFormat& format) {
  const std::string bytes = bytes_of(values, format);
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](std::size_t k) {
      return at + k < bytes.size() ? static_cast<unsigned char>(bytes[at + k]) : 0U;
    };
    const std::uint32_t word = byte(0) << 16U | byte(1) << 8U | byte(2);
    const std::size_t digits = std::min<std::size_t>(bytes.size() - at, 3) + 1;
    for (std::size_t k = 0; k < 4; ++k)
      out += k < digits ? base64_digits[word >> (18 - 6 * k) & 63U] : '=';
  }
  return out;
}

}  // namespace troupe::launch::api
