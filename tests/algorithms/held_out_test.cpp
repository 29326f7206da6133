#include "algorithms/held_out.h"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::algorithms {
namespace {

double margin_of(double confidence) {
  return std::log(confidence / (1 - confidence));
}

TEST(Calibration, OfAModelThatIsRightAsOftenAsItSaysIsZero) {
  std::vector<double> margins;
  for (int i = 0; i < 10; ++i) margins.push_back(i < 7 ? margin_of(0.7) : -margin_of(0.7));
  const auto found = calibration(margins, 10);
  EXPECT_NEAR(found.accuracy, 0.7, 1e-12);
  EXPECT_NEAR(found.error, 0, 1e-12);
}

TEST(Calibration, WeighsEachBinByItsPairs) {
  // Three pairs at confidence 0.62, of which one is right; one at 0.96, right.
  const auto found = calibration(
      std::vector<double>{margin_of(0.62), -margin_of(0.62), -margin_of(0.62), margin_of(0.96)},
      10);
  EXPECT_NEAR(found.error, 0.75 * std::abs(1.0 / 3 - 0.62) + 0.25 * 0.04, 1e-12);
  EXPECT_EQ(found.bins[2].pairs, 3u);
  EXPECT_NEAR(found.bins[2].low, 0.6, 1e-12);
  EXPECT_EQ(found.bins[9].pairs, 1u);
}

TEST(Calibration, TakesMarginsOfAnySize) {
  const auto found = calibration(std::vector<double>{1e6, -1e6, 0}, 5);
  EXPECT_EQ(found.bins[4].pairs, 2u);
  EXPECT_EQ(found.bins[0].pairs, 1u) << "a margin of 0 is a confidence of a half";
  EXPECT_NEAR(found.accuracy, 1.0 / 3, 1e-12);
}

}  // namespace
}  // namespace troupe::algorithms
