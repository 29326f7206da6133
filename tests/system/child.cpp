#include "tests/system/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {

Child::Child(const std::string& command, const std::string& log) {
  const std::string line = "exec " + command + " </dev/null >>'" + log + "' 2>&1";
  pid_ = fork();
  if (pid_ == 0) {
    execl("/bin/bash", "bash", "-c", line.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  EXPECT_GT(pid_, 0);
}

Child::~Child() {
  if (!ended()) signal(SIGKILL);
  wait();
}

bool Child::ended() {
  if (!reaped_) reaped_ = waitpid(pid_, &status_, WNOHANG) != 0;
  return reaped_;
}

bool Child::until(const std::function<bool()>& condition) {
  while (!condition()) {
    if (ended()) return false;
    sched_yield();
  }
  return true;
}

void Child::signal(int number) {
  kill(pid_, number);
}

int Child::wait() {
  if (!reaped_) waitpid(pid_, &status_, 0);
  reaped_ = true;
  return WIFSIGNALED(status_) ? -WTERMSIG(status_) : WEXITSTATUS(status_);
}

}  // namespace troupe::test
