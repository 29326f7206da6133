// KL controllers against published numbers (float64, computed independently), to 1e-9.
#include "algorithms/kl_control.h"

#include <gtest/gtest.h>

namespace troupe::algorithms {
namespace {

TEST(KlControl, AdaptiveHasThePublishedValues) {
  const KlControl control{KlSchedule::adaptive, 6, 10000};
  EXPECT_NEAR(control.next(0.2, 9.0, 256), 0.2010240000, 1e-12);
  EXPECT_NEAR(control.next(0.2010240000, 6.3, 256), 0.2012813107, 1e-9);
  EXPECT_NEAR(control.next(0.2012813107, 3.0, 256), 0.2002507504, 1e-9);
}

TEST(KlControl, AdaptiveHasMindSpeedsOwnValue) { EXPECT_NEAR((KlControl{KlSchedule::adaptive, 3, 1000}.next(0.2, 6, 16)), 0.20064, 1e-12); }

TEST(KlControl, FixedStays) { EXPECT_EQ(KlControl{}.next(0.05, 1e6, 256), 0.05); }

}  // namespace
}  // namespace troupe::algorithms
