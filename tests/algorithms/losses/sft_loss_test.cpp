#include "algorithms/losses/sft_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/algorithms/losses/cases.h"

namespace troupe::algorithms {
namespace {

using namespace troupe::test;

TEST(SftLoss, IsTheMeanNegativeLogLikelihoodOfTrainedTokens) {
  Experience b;
  b.append({1, 2, 3}, {0, 0, 1});
  b.append({1, 2, 3}, {0, 1, 1});
  b.count = 3;
  Report report;
  const auto out = slopes_of(SftLoss{}, {-9, -9, -1, -9, -2, -0.5}, {0, 0, 1, 0, 2, 3}, b, report);
  EXPECT_DOUBLE_EQ(out.loss, 3.5 / 3);
  EXPECT_EQ(out.dlogp, (std::vector<double>{0, 0, -1.0 / 3, 0, -1.0 / 3, -1.0 / 3}));
  EXPECT_DOUBLE_EQ(report.values().at("nll"), 3.5 / 3);
  EXPECT_DOUBLE_EQ(report.values().at("entropy"), 2);
}

TEST(SftLoss, DftWeighsEachTokenByItsOwnDetachedProbability) {
  Experience b;
  b.append({1, 2, 3}, {0, 1, 1});
  b.count = 2;
  Report report;
  const auto out =
      slopes_of(SftLoss{.kind = SftLossKind::dft}, {0, -1, -0.25}, {0, 0, 0}, b, report);
  EXPECT_DOUBLE_EQ(out.loss, (std::exp(-1.0) + 0.25 * std::exp(-0.25)) / 2);
  EXPECT_DOUBLE_EQ(out.dlogp[1], -std::exp(-1.0) / 2);
  EXPECT_DOUBLE_EQ(out.dlogp[2], -std::exp(-0.25) / 2);
}

}  // namespace
}  // namespace troupe::algorithms
