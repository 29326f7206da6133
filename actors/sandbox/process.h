// Process: a program of somebody else at work in its box. Whatever it does, kill() leaves nothing
// of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "actors/sandbox/plan.h"
#include "engine/base/error.h"

namespace troupe::actors::sandbox {

/// A file descriptor that closes itself.
class Handle {
 public:
  Handle() = default;
  explicit Handle(int fd) : fd_(fd) {}
  Handle(Handle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Handle() { close(); }
  void close();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

/// How a process ended.
struct Ending {
  int status = 0;                 ///< as wait() gives it
  std::uint64_t peak_memory = 0;  ///< bytes, of its largest process; 0: not more than this one has
                                  ///< had, which the kernel counts for it too
  std::string text()
      const;  ///< "ended with exit code 3", "was killed by signal 11 (Segmentation fault)"
};

class Process {
 public:
  /// It runs already, or could not: Errc::not_found (its program), unsupported (what the kernel
  /// denies, and which setting does without), io.
  static Result<Process> start(const Plan& plan);
  Process(Process&&) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  /// Descriptors for poll(): its input, output and errors do not block; `ending` is readable when
  /// it has ended.
  int input() const { return input_.get(); }
  int output() const { return output_.get(); }
  int errors() const { return errors_.get(); }
  int ending() const { return ending_.get(); }
  pid_t id() const { return id_; }

  /// The bytes that it took; -1 and errno otherwise (EPIPE: it does not listen any more). No
  /// SIGPIPE.
  ssize_t write(std::string_view text);
  /// Seconds of processor time that it has used itself.
  double processor_seconds() const;
  /// Ends it and everything that it started, and waits until that is so. An ending of its own is
  /// told as it was.
  Ending kill();

 private:
  Process() = default;
  Result<> settle(const Plan& plan, int go, int report);

  pid_t id_ = -1;
  bool whole_ =
      false;  ///< its end is the end of all that it started: it is the first process of a namespace
  std::string folder_;           ///< to be removed
  std::uint64_t inherited_ = 0;  ///< bytes of memory that were counted for it before it ran its own
                                 ///< program: a copy of this process
  Handle input_, output_, errors_, ending_;
};

}  // namespace troupe::actors::sandbox
