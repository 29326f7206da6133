// Controllers of coefficients: KL against published numbers (float64, computed independently), to
// 1e-9.
#include "algorithms/advantages/controllers.h"

#include <gtest/gtest.h>

namespace troupe::algorithms {
namespace {

TEST(KlControl, AdaptiveHasThePublishedValues) {
  const KlControl control{KlSchedule::adaptive, 6, 10000};
  EXPECT_NEAR(control.next(0.2, 9.0, 256), 0.2010240000, 1e-12);
  EXPECT_NEAR(control.next(0.2010240000, 6.3, 256), 0.2012813107, 1e-9);
  EXPECT_NEAR(control.next(0.2012813107, 3.0, 256), 0.2002507504, 1e-9);
}

TEST(KlControl, AdaptiveHasMindSpeedsOwnValue) {
  EXPECT_NEAR((KlControl{KlSchedule::adaptive, 3, 1000}.next(0.2, 6, 16)), 0.20064, 1e-12);
}

TEST(EntropyControl, StepsTowardsItsTargetWithinItsBounds) {
  const EntropyControl control{EntropySchedule::adaptive, 0.2, 0.005, 0, 0.02};
  EXPECT_DOUBLE_EQ(control.next(0.01, 0.1), 0.015);
  EXPECT_DOUBLE_EQ(control.next(0.01, 0.3), 0.005);
  EXPECT_DOUBLE_EQ(control.next(0.01, 0.2), 0.01);
  EXPECT_DOUBLE_EQ(control.next(0.018, 0.1), 0.02);
  EXPECT_DOUBLE_EQ(control.next(0.003, 0.3), 0);
}

TEST(EntropyControl, GivesNoBonusAboveItsTarget) {
  const EntropyControl control{EntropySchedule::adaptive, 0.2, 0.005, 0, 1};
  EXPECT_EQ(control.bonus(0.3, 0.25), 0);
  EXPECT_EQ(control.bonus(0.3, 0.2), 0.3);
  EXPECT_EQ(EntropyControl{}.bonus(0.3, 5), 0.3);
  EXPECT_EQ(EntropyControl{}.next(0.3, 5), 0.3);
}

TEST(KlControl, FixedStays) {
  EXPECT_EQ(KlControl{}.next(0.05, 1e6, 256), 0.05);
}

}  // namespace
}  // namespace troupe::algorithms
