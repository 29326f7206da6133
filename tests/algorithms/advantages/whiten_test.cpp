// Whitening against published numbers (float64, computed independently), to 1e-9.
#include "algorithms/advantages/whiten.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/base/errors/check.h"

namespace troupe::algorithms {
namespace {

using Numbers = std::vector<double>;

const Numbers advantages{.799675, .7365, .67, .6};
const std::vector<float> all(4, 1.0f);

void expect_near_whitened(const Numbers& found, const Numbers& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t t = 0; t < found.size(); ++t)
    EXPECT_NEAR(found[t], expected[t], 1e-9) << "token " << t;
}

TEST(Whitening, HasThePublishedValuesBothWays) {
  expect_near_whitened(whitened(advantages, all),
                       {1.1418370222, .4067444408, -.3670372238, -1.1815442392});
  expect_near_whitened(whitened(advantages, all, {.variance = Variance::biased}),
                       {1.3184795268, .4696679188, -.4238179843, -1.3643294613});
}

TEST(Whitening, MayKeepTheMean) {
  const auto out = whitened(Numbers{0, 0, 0, 1}, all, {.shift_mean = false});
  for (std::size_t t = 0; t < 4; ++t)
    EXPECT_NEAR(out[t], (Numbers{-.24999999, -.24999999, -.24999999, 1.7499999700}[t]), 1e-8);
}

TEST(Whitening, DoesNotReadWhatIsNotTrainedOn) {
  const Numbers x{.799675, std::numeric_limits<double>::quiet_NaN(), .7365, .67, 1e9, .6};
  const auto out = whitened(x, std::vector<float>{1, 0, 1, 1, 0, 1});
  expect_near_whitened(out, {1.1418370222, 0, .4067444408, -.3670372238, 0, -1.1815442392});
}

TEST(Whitening, OneNumberOrEqualOnesGiveExactlyZeroAndNothingGivesNothing) {
  EXPECT_EQ(whitened(Numbers{.7}, std::vector<float>{1}), (Numbers{0}));
  EXPECT_EQ(whitened(Numbers{.1, .1, .1}, std::vector<float>(3, 1.0f)), (Numbers{0, 0, 0}));
  EXPECT_EQ(whitened(Numbers{.7, .8}, std::vector<float>(2, 0.0f)), (Numbers{0, 0}));
  EXPECT_THROW(whitened(Numbers{.7}, all), Bug);
}

}  // namespace
}  // namespace troupe::algorithms
