#include "launch/cluster/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "engine/base/environment_error.h"
#include "engine/base/file.h"
#include "engine/base/text.h"

namespace troupe::launch::cluster {
namespace {

Result<> pipe_of(Descriptor& read, Descriptor& write) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(os_error(errno, "cannot create a pipe"));
  read = Descriptor(ends[0]);
  write = Descriptor(ends[1]);
  return {};
}

// Runs between fork and exec: system calls only, no allocation.
[[noreturn]] void execute(char* const* arguments, int in, int out, pid_t parent) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const bool ready =
      ::getppid() == parent && ::dup2(in, 0) >= 0 && ::dup2(out, 1) >= 0 && ::dup2(out, 2) >= 0;
  if (ready) ::execv(arguments[0], arguments);
  ::_exit(127);
}

// The fourth field of /proc/PID/stat. The name before it is in parentheses and may contain any
// character.
pid_t parent_of(const std::string& pid) {
  const std::string text = read_proc_file(cat("/proc/", pid, "/stat"));
  const auto name_end = text.rfind(')');
  if (name_end == text.npos || text.size() < name_end + 4) return 0;  // exited meanwhile
  return static_cast<pid_t>(std::strtol(text.c_str() + name_end + 4, nullptr, 10));
}

void kill_children() {
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos || parent_of(name) != ::getpid())
      continue;
    ::kill(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)), SIGKILL);
  }
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& command) {
  ChildProcess child;
  Descriptor child_input, child_output;
  RETURN_IF_ERROR(pipe_of(child_input, child.input_));
  RETURN_IF_ERROR(pipe_of(child.output_, child_output));
  ::fcntl(child.output_.get(), F_SETFL, O_NONBLOCK);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  child.pid_ = ::fork();
  if (child.pid_ < 0) return fail(os_error(errno, "cannot start a process"));
  if (child.pid_ == 0) execute(arguments.data(), child_input.get(), child_output.get(), parent);
  child.exited_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  if (child.exited_.open()) return child;
  const int why = errno;
  child.signal(SIGKILL);
  ::waitpid(child.pid_, nullptr, 0);
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
    kill_children();
    ::poll(nullptr, 0, 1);
  }
  return reaped;
}

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

}  // namespace troupe::launch::cluster
