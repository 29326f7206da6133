#include "engine/base/threads/cancellation.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Cancellation, EndsReadingThatIsInProgressAndNothingElse) {
  EXPECT_FALSE(cancel_reading());
  EXPECT_TRUE(check_cancelled());
  {
    const CancellableReading reading;
    EXPECT_TRUE(check_cancelled());
    EXPECT_TRUE(cancel_reading());
    EXPECT_EQ(check_cancelled().error().code, Errc::cancelled);
    EXPECT_THROW(throw_if_cancelled(), Failure);
    EXPECT_TRUE(cancel_reading());
  }
  EXPECT_TRUE(check_cancelled());
  const CancellableReading again;
  EXPECT_TRUE(check_cancelled());
}

}  // namespace
}  // namespace troupe
