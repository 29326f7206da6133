// ChildProcess: a program that this process runs, with pipes to its stdin and from its output.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/files/descriptor.h"

namespace troupe {

class ChildProcess {
 public:
  /// Starts `command` (its first element is a path, or a name to find in PATH) in a session of its
  /// own, so that neither Ctrl-C nor the hangup of a terminal reaches it. The kernel kills it when
  /// the calling thread ends. Its stdout and stderr share one pipe. Errc::not_found if there is no
  /// such program; Errc::io.
  static Result<ChildProcess> start(const std::vector<std::string>& command);

  pid_t pid() const { return pid_; }
  /// Readable once the process has exited.
  int exit_fd() const { return exited_.get(); }
  /// Output of the process; non-blocking.
  int output_fd() const { return output_.get(); }
  /// Writes all of `text` to its stdin. Errc::io; Errc::closed if the process has exited.
  Result<> write_input(std::string_view text);
  /// Closes its stdin, which asks a worker to exit.
  void close_input() { input_.close(); }
  /// Sends a signal to its process group.
  void signal(int number) const;
  /// The wait status, at the first call after the process has exited; does not block.
  std::optional<int> reap();
  /// Kills its process group and reaps it. Returns the wait status.
  int kill();

 private:
  ChildProcess() = default;
  pid_t pid_ = 0;
  bool reaped_ = false;
  Descriptor input_, output_, exited_;
};

/// fork(2). The kernel sends `death_signal` to the child when the calling thread ends.
pid_t fork_with_death_signal(int death_signal);
/// A descriptor that is readable once the process has exited; not open, with errno, before Linux
/// 5.3.
Descriptor open_pidfd(pid_t process);

/// "exited with code 5", "was killed by signal 9 (Killed)".
std::string describe_exit(int wait_status);
/// Whether signal 9 ended the process, or one of its own that it reports by code 137, as mpirun and
/// shells do.
bool was_killed(int wait_status);

/// Kills and reaps all children of this process; after adopt_orphans() all descendants. Returns how
/// many.
int kill_descendants();
/// Makes this process the parent of its orphaned descendants, in place of init.
void adopt_orphans();

}  // namespace troupe
