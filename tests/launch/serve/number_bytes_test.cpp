#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "launch/serve/api/number_bytes.h"

namespace troupe::launch::serve::api {
namespace {

struct Type {
  serve::api::NumberType type;
  int mantissa, bias, largest;  ///< bits of the largest finite number
};

constexpr Type types[] = {{serve::api::NumberType::f8_e4m3, 3, 7, 0x7E},
                          {serve::api::NumberType::f8_e5m2, 2, 15, 0x7B}};

/// By the definition of the format.
double number_of(int byte, const Type& type) {
  const int exponent = byte >> type.mantissa, steps = byte & ((1 << type.mantissa) - 1);
  if (exponent == 0) return std::ldexp(steps, 1 - type.bias - type.mantissa);
  return std::ldexp((1 << type.mantissa) + steps, exponent - type.bias - type.mantissa);
}

int byte_of(double value, const Type& type) {
  const float number = static_cast<float>(value);
  const std::string bytes = serve::api::bytes_of(std::span(&number, 1), {.type = type.type});
  EXPECT_EQ(bytes.size(), 1U);
  return static_cast<unsigned char>(bytes[0]);
}

TEST(NumberBytes, EveryNumberOfOneByteIsItself) {
  for (const Type& type : types)
    for (int byte = 0; byte <= type.largest; ++byte) {
      EXPECT_EQ(byte_of(number_of(byte, type), type), byte);
      EXPECT_EQ(byte_of(-number_of(byte, type), type), byte | 0x80);
    }
}

TEST(NumberBytes, NumbersBetweenTwoAreRoundedToNearestTiesToEven) {
  for (const Type& type : types)
    for (int byte = 0; byte < type.largest; ++byte) {
      const double low = number_of(byte, type), high = number_of(byte + 1, type);
      const double middle = (low + high) / 2, step = (high - low) / 64;
      EXPECT_EQ(byte_of(middle - step, type), byte);
      EXPECT_EQ(byte_of(middle + step, type), byte + 1);
      EXPECT_EQ(byte_of(middle, type), byte % 2 == 0 ? byte : byte + 1);
    }
}

TEST(NumberBytes, NumbersBeyondTheLargestAreNotFinite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const Type& type : types) {
    for (const double value : {1e5, 1e30, static_cast<double>(infinity)}) {
      EXPECT_EQ(byte_of(value, type), type.largest + 1);
      EXPECT_EQ(byte_of(-value, type), (type.largest + 1) | 0x80);
    }
    EXPECT_EQ(byte_of(std::nan(""), type), 0x7F);
    EXPECT_EQ(byte_of(1e-30, type), 0);
  }
  EXPECT_EQ(byte_of(463.9, types[0]), 0x7E);
  EXPECT_EQ(byte_of(464, types[0]), 0x7E);
  EXPECT_EQ(byte_of(464.1, types[0]), 0x7F);
}

TEST(NumberBytes, TheOrderOfBytesIsThatOfTheFormat) {
  const float number = 1.5F;
  EXPECT_EQ(serve::api::bytes_of(std::span(&number, 1), {}), std::string("\0\0\xC0\x3F", 4));
  EXPECT_EQ(serve::api::bytes_of(std::span(&number, 1), {.big_endian = true}),
            std::string("\x3F\xC0\0\0", 4));
  EXPECT_EQ(serve::api::bytes_of(std::span(&number, 1), {.type = serve::api::NumberType::f8_e5m2}),
            ">");
}

}  // namespace
}  // namespace troupe::launch::serve::api
