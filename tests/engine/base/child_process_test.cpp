#include "engine/base/processes/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "engine/base/processes/pipe.h"

namespace troupe::child_process_test {
namespace {

constexpr std::chrono::seconds long_time{60};

// What a child writes until it closes its output.
std::string output_of(const ChildProcess& child) {
  std::string all;
  std::array<char, 256> bytes;
  while (wait_readable(child.output_fd(), long_time)) {
    const ssize_t count = ::read(child.output_fd(), bytes.data(), bytes.size());
    if (count <= 0) break;
    all.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return all;
}

ChildProcess shell(const std::string& script) {
  return value_or_throw(ChildProcess::start({"sh", "-c", script}));
}

TEST(ChildProcess, HasPipesToItsInputAndFromBothOutputs) {
  ChildProcess child = shell("read line; echo \"out $line\"; echo err >&2; exit 5");
  ASSERT_TRUE(child.write_input("text\n"));
  EXPECT_EQ(output_of(child), "out text\nerr\n");
  ASSERT_TRUE(wait_readable(child.exit_fd(), long_time));
  const auto status = child.reap();
  ASSERT_TRUE(status);
  EXPECT_EQ(describe_exit(*status), "exited with code 5");
  EXPECT_FALSE(was_killed(*status));
  EXPECT_FALSE(child.reap());
}

TEST(ChildProcess, LeadsASessionWithoutBlockedSignals) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  ChildProcess child = shell("cut -d ' ' -f 6 /proc/$$/stat; grep SigBlk /proc/self/status");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(output_of(child), std::to_string(child.pid()) + "\nSigBlk:\t0000000000000000\n");
  child.kill();
}

TEST(ChildProcess, IsKilledWithItsGroup) {
  ChildProcess child = shell("sleep 1000 & sleep 1000");
  EXPECT_FALSE(child.reap());
  const int status = child.kill();
  EXPECT_EQ(describe_exit(status), "was killed by signal 9 (Killed)");
  EXPECT_TRUE(was_killed(status));
  EXPECT_EQ(output_of(child), "");  // the second process, which has the pipe too, ended as well
}

TEST(ChildProcess, EndsWithTheThreadThatStartedIt) {
  std::optional<ChildProcess> child;
  std::thread([&] { child = shell("sleep 1000"); }).join();
  ASSERT_TRUE(wait_readable(child->exit_fd(), long_time));
  EXPECT_TRUE(was_killed(child->reap().value_or(0)));
}

TEST(ChildProcess, NamesAProgramThatCannotRun) {
  const auto missing = ChildProcess::start({"/no/such/program"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::not_found);
  EXPECT_EQ(missing.error().what, "cannot run \"/no/such/program\": No such file or directory");
  const auto folder = ChildProcess::start({"/"});
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, Errc::io);
  EXPECT_EQ(folder.error().what, "cannot run \"/\": Permission denied");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

}  // namespace
}  // namespace troupe::child_process_test
