// NumberBytes: numbers of answers as bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe::launch::serve::api {

/// The last two are types of one byte: 4 bits of exponent, 3 of mantissa and no infinity, and 5 and
/// 2 bits (FP8 Formats for Deep Learning, arXiv 2209.05433).
enum class NumberType : std::uint8_t { f32, f16, bf16, f8_e4m3, f8_e5m2 };
/// vLLM's names, in the order of NumberType.
inline constexpr std::string_view number_types[] = {"float32", "float16", "bfloat16", "fp8_e4m3",
                                                    "fp8_e5m2"};
inline std::string_view name_of(NumberType type) {
  return number_types[static_cast<int>(type)];
}

/// As JSON numbers, as base64 of their bytes, or the bytes themselves, with a header that describes
/// them or without.
enum class NumberEncoding : std::uint8_t { json, base64, bytes, bytes_only };
inline constexpr std::string_view number_encodings[] = {"float", "base64", "bytes", "bytes_only"};

struct NumberFormat {
  NumberEncoding encoding = NumberEncoding::json;
  NumberType type = NumberType::f32;  ///< rounded to nearest, ties to even
  bool big_endian = false;
};

std::string bytes_of(std::span<const float> values, const NumberFormat& format);

}  // namespace troupe::launch::serve::api
