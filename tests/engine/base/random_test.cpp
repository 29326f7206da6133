#include "engine/base/random/random.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

// The known answers published with the Random123 library (kat_vectors, philox4x32 10).
TEST(Philox, ReproducesThePublishedVectors) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Uniform, StaysInRangeAndHasTheRightMean) {
  double sum = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const double x = uniform(7, 3, i);
    ASSERT_GE(x, 0.0);
    ASSERT_LT(x, 1.0);
    sum += x;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);
}

TEST(Uniform, EveryPartOfTheAddressMatters) {
  const double x = uniform(1, 2, 3);
  EXPECT_NE(x, uniform(2, 2, 3));
  EXPECT_NE(x, uniform(1, 3, 3));
  EXPECT_NE(x, uniform(1, 2, 4));
  EXPECT_EQ(x, uniform(1, 2, 3));
}

}  // namespace
}  // namespace troupe
