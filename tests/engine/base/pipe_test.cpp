#include "engine/base/processes/pipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace troupe::pipe_test {
namespace {

using std::chrono::milliseconds, std::chrono::steady_clock;
using testing::ElementsAre;

TEST(WaitReadable, NamesTheDescriptorsThatAreReadable) {
  Pipe silent = value_or_throw(new_pipe()), written = value_or_throw(new_pipe());
  Pipe unwritten = value_or_throw(new_pipe()), unread = value_or_throw(new_pipe());
  ASSERT_EQ(::write(written.write.get(), "x", 1), 1);
  unwritten.write.close();
  unread.read.close();
  EXPECT_THAT(wait_readable({{silent.read.get(), written.read.get(), -1, unwritten.read.get(),
                              silent.write.get(), unread.write.get()}},
                            steady_clock::time_point::max()),
              ElementsAre(false, true, false, true, false, true));
}

TEST(WaitReadable, EndsAtItsDeadline) {
  const Pipe silent = value_or_throw(new_pipe());
  const auto began = steady_clock::now();
  EXPECT_FALSE(wait_readable(silent.read.get(), milliseconds(20)));
  EXPECT_GE(steady_clock::now() - began, milliseconds(20));
  EXPECT_THAT(wait_readable({{silent.read.get()}}, began), ElementsAre(false));
}

}  // namespace
}  // namespace troupe::pipe_test
