// Writes to a full disk (/dev/full): they fail at once, or after the time that was set.
#include "engine/base/files/space_wait.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "engine/base/files/descriptor.h"
#include "engine/base/files/system_calls.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;

const std::string full = "/dev/full";

class FullDevice : public testing::Test {
 protected:
  ~FullDevice() override { wait_for_disk_space(milliseconds(0), {}); }
  void wait_at_most(milliseconds longest) {
    wait_for_disk_space(longest, [this](const std::string& text) { said_.push_back(text); });
  }
  Result<> write(OnFullDisk what) const {
    const Descriptor file(::open(full.c_str(), O_WRONLY | O_CLOEXEC));
    return write_whole(file.get(), "text", full, what);
  }
  std::vector<std::string> said_;
};

TEST_F(FullDevice, IsWaitedForAsLongAsWasSet) {
  wait_at_most(milliseconds(250));
  const auto began = std::chrono::steady_clock::now();
  const auto written = write(OnFullDisk::wait);
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(250));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::io);
  EXPECT_THAT(written.error().what, HasSubstr("/dev/full: cannot write: No space left on device"));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("/dev/full: the disk is full; the run waits up to 0.25"),
                                 HasSubstr("/dev/full: waited 0.")));
}

TEST_F(FullDevice, FailsAtOnceWhereNobodyWaits) {
  wait_at_most(std::chrono::minutes(10));
  EXPECT_FALSE(write(OnFullDisk::fail));
  wait_at_most(milliseconds(0));
  EXPECT_FALSE(write(OnFullDisk::wait));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(FullDevice, OtherErrorsAreNotWaitedFor) {
  wait_at_most(std::chrono::minutes(10));
  SpaceWait space(full);
  EXPECT_FALSE(space.again(EIO));
  EXPECT_FALSE(space.again(0));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(FullDevice, OfSeveralThatWaitTheFirstAndTheLastNotify) {
  wait_at_most(std::chrono::minutes(10));
  {
    SpaceWait first(full), second(full);
    EXPECT_TRUE(first.again(ENOSPC));
    EXPECT_EQ(errno, ENOSPC);
    EXPECT_TRUE(second.again(EDQUOT));
    EXPECT_TRUE(first.again(ENOSPC));
    EXPECT_EQ(said_.size(), 1u);
  }
  EXPECT_EQ(said_.size(), 2u);
}

}  // namespace
}  // namespace troupe
