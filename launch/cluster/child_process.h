// Child: a process that launch started, with its input and its output in our hands.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace troupe::launch {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void close();

 private:
  int fd_;
};

class Child {
 public:
  /// Starts `command` (its first word is a path) in a process group of its own, so that a
  /// terminal's Ctrl-C does not reach it. The kernel kills it when the calling thread ends. Its
  /// stdout and stderr are one pipe. Errc::io.
  static Result<Child> start(const std::vector<std::string>& command);

  pid_t pid() const { return pid_; }
  /// Readable when the process has ended.
  int ending() const { return ending_.get(); }
  /// What it prints; does not block.
  int output() const { return output_.get(); }
  /// Writes all of `text` to its stdin. Errc::io, Errc::closed when it is gone.
  Result<> tell(std::string_view text);
  /// The end of its stdin: the sign to leave.
  void dismiss() { input_.close(); }
  /// To its process group.
  void signal(int number) const;
  /// Its wait status once it has ended, at the first call after that; never blocks.
  std::optional<int> reap();

 private:
  Child() = default;
  pid_t pid_ = 0;
  bool reaped_ = false;
  Descriptor input_, output_, ending_;
};

/// "ended with exit code 5", "was killed by signal 9 (Killed)".
std::string ending_text(int wait_status);

/// Kills and reaps whatever still has this process as its parent: after take_in_orphans() also
/// children's children. Returns how many.
int sweep_children();
/// From now on the children of a child that ends become ours instead of init's, so that nobody is
/// lost from sight.
void take_in_orphans();

}  // namespace troupe::launch
