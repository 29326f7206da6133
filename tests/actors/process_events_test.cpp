#include "actors/runtime/process_events.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "engine/base/files/descriptor.h"

namespace troupe::actors::process_events_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::ElementsAre;

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
  Descriptor read, write;
};

TEST(ProcessEvents, NamesTheDescriptorsThatAreReady) {
  Pipe silent, talking, closed;
  ASSERT_EQ(::write(talking.write.get(), "x", 1), 1);
  closed.write.close();
  ProcessEvents events;
  EXPECT_THAT(events.wait({{{silent.read.get()},
                            {talking.read.get()},
                            {-1},
                            {closed.read.get()},
                            {silent.write.get(), true}}}),
              ElementsAre(false, true, false, true, true));
  EXPECT_EQ(::write(silent.write.get(), "x", 1), 1) << "the descriptors stay open";
  EXPECT_THAT(events.wait({{{silent.read.get()}, {talking.read.get()}}}), ElementsAre(true, true))
      << "what was not read is still there";
}

TEST(ProcessEvents, WaitsForAFullPipeToHaveRoom) {
  Pipe pipe;
  ::fcntl(pipe.write.get(), F_SETFL, O_NONBLOCK);
  const std::vector<char> bytes(1 << 20);
  ASSERT_GT(::write(pipe.write.get(), bytes.data(), bytes.size()), 0);
  ProcessEvents events;
  EXPECT_THAT(events.wait({{{pipe.write.get(), true}}}, steady_clock::now()), ElementsAre(false));
  std::vector<char> taken(1 << 16);
  ASSERT_GT(::read(pipe.read.get(), taken.data(), taken.size()), 0);
  EXPECT_THAT(events.wait({{{pipe.write.get(), true}}}), ElementsAre(true));
}

TEST(ProcessEvents, SeesTheExitOfAProcess) {
  Pipe input;
  const pid_t child = ::fork();
  if (child == 0) {
    input.write.close();
    char byte;
    ::_exit(::read(input.read.get(), &byte, 1) == 0 ? 0 : 1);
  }
  const Descriptor exited(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  ASSERT_TRUE(exited.open());
  ProcessEvents events;
  EXPECT_THAT(events.wait({{{exited.get()}}}, steady_clock::now()), ElementsAre(false));
  input.write.close();
  EXPECT_THAT(events.wait({{{exited.get()}}}), ElementsAre(true));
  ::waitpid(child, nullptr, 0);
}

TEST(ProcessEvents, ReturnsAtTheDeadlineAndNotBefore) {
  Pipe silent;
  ProcessEvents events;
  const auto until = steady_clock::now() + milliseconds(30);
  EXPECT_THAT(events.wait({{{silent.read.get()}}}, until), ElementsAre(false));
  EXPECT_GE(steady_clock::now(), until);
}

TEST(ProcessEvents, AWakeUpEndsThePresentWaitOrTheNext) {
  Pipe silent;
  ProcessEvents events;
  events.wake();
  EXPECT_THAT(events.wait({{{silent.read.get()}}}), ElementsAre(false));
  std::thread other([&] { events.wake(); });
  EXPECT_THAT(events.wait({{{silent.read.get()}}}), ElementsAre(false));
  other.join();
  const auto until = steady_clock::now() + milliseconds(1);
  events.wait({}, until);
  EXPECT_GE(steady_clock::now(), until) << "each is used once";
}

}  // namespace
}  // namespace troupe::actors::process_events_test
