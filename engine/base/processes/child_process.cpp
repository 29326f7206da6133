#include "engine/base/processes/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "engine/base/files/environment_error.h"
#include "engine/base/processes/pipe.h"
#include "engine/base/processes/process_tree.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

// Runs between fork and exec: system calls only, no allocation. Writes errno to `failure`, which
// exec() closes.
[[noreturn]] void execute(char* const* arguments, int in, int out, int failure) {
  ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (::dup2(in, 0) >= 0 && ::dup2(out, 1) >= 0 && ::dup2(out, 2) >= 0)
    ::execvp(arguments[0], arguments);
  const int why = errno;
  [[maybe_unused]] const ssize_t written = ::write(failure, &why, sizeof why);
  ::_exit(127);
}

// errno of an execute() that failed; 0 when the program runs.
int failure_of(const Descriptor& failure) {
  int why = 0;
  while (::read(failure.get(), &why, sizeof why) < 0 && errno == EINTR) {
  }
  return why;
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& command) {
  auto input = new_pipe(), output = new_pipe(), failure = new_pipe();
  for (const auto* made : {&input, &output, &failure}) RETURN_IF_ERROR(*made);
  ChildProcess child;
  child.input_ = std::move(input->write);
  child.output_ = std::move(output->read);
  ::fcntl(child.output_.get(), F_SETFL, O_NONBLOCK);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  child.pid_ = fork_with_death_signal(SIGKILL);
  if (child.pid_ < 0) return fail(os_error(errno, "cannot start a process"));
  if (child.pid_ == 0)
    execute(arguments.data(), input->read.get(), output->write.get(), failure->write.get());
  failure->write.close();
  if (const int why = failure_of(failure->read); why != 0) {
    child.kill();
    return fail(why == ENOENT ? Errc::not_found : Errc::io,
                cat("cannot run ", quote(command[0]), ": ", reason_of(why)));
  }
  child.exited_ = open_pidfd(child.pid_);
  if (child.exited_.open()) return child;
  const int why = errno;
  child.kill();
  return fail(Errc::io, cat("cannot watch process ", child.pid_, ": ", reason_of(why),
                            " (pidfd_open needs Linux 5.3)"));
}

Result<> ChildProcess::write_input(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(input_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      return fail(errno == EPIPE ? Errc::closed : Errc::io,
                  cat("process ", pid_, " closed its input: ", reason_of(errno)));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

void ChildProcess::signal(int number) const {
  // Before the child has called setsid() there is no such group.
  if (!reaped_ && ::kill(-pid_, number) != 0) ::kill(pid_, number);
}

std::optional<int> ChildProcess::reap() {
  int status = 0;
  if (reaped_ || ::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  reaped_ = true;
  return status;
}

int ChildProcess::kill() {
  signal(SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  return status;
}

pid_t fork_with_death_signal(int death_signal) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, death_signal);
  if (::getppid() != parent) ::_exit(127);  // it ended before prctl(): no signal comes
  return child;
}

Descriptor open_pidfd(pid_t process) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

std::string describe_exit(int wait_status) {
  if (WIFSIGNALED(wait_status))
    return cat("was killed by signal ", WTERMSIG(wait_status), " (",
               ::strsignal(WTERMSIG(wait_status)), ")");
  return cat("exited with code ", WEXITSTATUS(wait_status));
}

bool was_killed(int wait_status) {
  constexpr int shell_code = 128 + SIGKILL;
  return WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) == SIGKILL
                                  : WEXITSTATUS(wait_status) == shell_code;
}

int kill_descendants() {
  int reaped = 0;
  for (int tries = 0; tries < 1000; ++tries) {
    const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
    if (ended < 0) return reaped;  // no children left
    if (ended > 0) {
      ++reaped;
      continue;
    }
    for (const ProcessEntry& entry : descendants())
      if (entry.parent == ::getpid()) ::kill(entry.id, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return reaped;
}

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

}  // namespace troupe
