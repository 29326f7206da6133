#include "engine/checkpoint/half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::engine::checkpoint {
namespace {

// The definition of binary16, in double.
double f16_value(std::uint16_t half) {
  const double sign = half & 0x8000 ? -1 : 1;
  const int exponent = (half >> 10) & 31, mantissa = half & 1023;
  return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                       : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryF16WidensToItsValueAndComesBackBitForBit) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = f16_to_float(half);
    EXPECT_EQ(float_to_f16(wide), half) << bits;
    const int magnitude = half & 0x7FFF;
    EXPECT_EQ(std::isnan(wide), magnitude > 0x7C00) << bits;
    if (magnitude == 0x7C00) {
      EXPECT_TRUE(std::isinf(wide)) << bits;
    } else if (magnitude < 0x7C00) {
      EXPECT_EQ(static_cast<double>(wide), f16_value(half)) << bits;
    }
  }
}

TEST(Half, EveryBf16ComesBackBitForBit) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    EXPECT_EQ(float_to_bf16(bf16_to_float(half)), half) << bits;
  }
}

// Between two neighbouring halves: below the middle goes down, above it up, the middle to the even
// one.
template <class Widen, class Narrow>
void rounds_to_nearest_even(std::uint16_t last_finite, Widen widen, Narrow narrow) {
  for (std::uint16_t low = 0; low < last_finite; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const double middle = (static_cast<double>(widen(low)) + static_cast<double>(widen(high))) / 2;
    const auto even = low % 2 == 0 ? low : high;
    const auto exact = static_cast<float>(
        middle);  // both formats leave float the one extra bit that a middle needs
    ASSERT_EQ(static_cast<double>(exact), middle) << low;
    ASSERT_EQ(narrow(exact), even) << low;
    ASSERT_EQ(narrow(std::nextafter(exact, 0.0f)), low) << low;
    ASSERT_EQ(narrow(std::nextafter(exact, INFINITY)), high) << low;
    ASSERT_EQ(narrow(-exact), even | 0x8000) << low;
  }
}

TEST(Half, F16RoundsToNearestEven) {
  rounds_to_nearest_even(0x7BFF, f16_to_float, float_to_f16);
}
TEST(Half, Bf16RoundsToNearestEven) {
  rounds_to_nearest_even(0x7F7F, bf16_to_float, float_to_bf16);
}

TEST(Half, TooLargeForF16BecomesInfinityFromTheMiddleOn) {
  EXPECT_EQ(float_to_f16(65519.99f), 0x7BFF);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7C00);
  EXPECT_EQ(float_to_f16(-1e30f), 0xFC00);
  EXPECT_EQ(float_to_bf16(3.4028235e38f), 0x7F80);
}

TEST(Half, ANanWhosePayloadIsLostStaysANan) {
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7F800001u)))));
  EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(std::bit_cast<float>(0xFF800001u)))));
}

}  // namespace
}  // namespace troupe::engine::checkpoint
