#include "tests/launch/pseudo_terminal.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace troupe::launch {

PseudoTerminal::PseudoTerminal(const std::vector<std::string>& arguments,
                               const std::map<std::string, std::string>& environment) {
  std::vector<const char*> words{TROUPE_PROGRAM};
  for (const auto& each : arguments) words.push_back(each.c_str());
  words.push_back(nullptr);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = 80;
  child_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
  if (child_ != 0) return;
  ::setenv("TERM", "xterm", 1);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::execv(TROUPE_PROGRAM, const_cast<char* const*>(words.data()));
  ::_exit(127);
}

PseudoTerminal::~PseudoTerminal() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ::close(terminal_);
}

void PseudoTerminal::type(const std::string& keys) const {
  EXPECT_EQ(::write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

bool PseudoTerminal::read_more() {
  pollfd ready{terminal_, POLLIN, 0};
  char buffer[4096];
  if (::poll(&ready, 1, 60'000) != 1) return false;
  const auto count = ::read(terminal_, buffer, sizeof buffer);  // EIO: the program has ended
  if (count > 0) printed_.append(buffer, static_cast<std::size_t>(count));
  return count > 0;
}

void PseudoTerminal::wait_for(const std::string& text) {
  for (;;) {
    const auto at = printed_.find(text, seen_);
    if (at != std::string::npos) {
      seen_ = at + text.size();
      return;
    }
    if (read_more()) continue;
    ADD_FAILURE() << "waited for \"" << text << "\"; the program printed: " << printed_;
    return;
  }
}

int PseudoTerminal::wait_for_exit() {
  while (read_more()) {
  }
  // A program that printed nothing for a minute may wait for keys.
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, child_, 0));
  pollfd ended{process, POLLIN, 0};
  if (::poll(&ended, 1, 10'000) != 1) {
    ADD_FAILURE() << "the program does not end; it printed: " << printed_;
    ::kill(child_, SIGKILL);
  }
  ::close(process);
  int status = 0;
  ::waitpid(child_, &status, 0);
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace troupe::launch
