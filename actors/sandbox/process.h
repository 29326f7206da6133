// Process: an untrusted program in a sandbox. kill() ends it and every process that it started.
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

/// Exit status of a process.
struct ExitStatus {
  int status = 0;  ///< as returned by wait()
  /// Peak memory of its largest process in bytes; 0 when not above the peak of this process, which
  /// the kernel counts for its children too.
  std::uint64_t peak_memory = 0;
  /// "ended with exit code 3", "was killed by signal 11 (Segmentation fault)".
  std::string text() const;
};

class Process {
 public:
  /// Starts the program. Errc::not_found (no such program), unsupported (the kernel denies
  /// isolation; the message names the setting that does without it), io.
  static Result<Process> start(const Plan& plan);
  Process(Process&&) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  /// Descriptors for poll(). Input, output and errors are non-blocking; exited() becomes readable
  /// when the process ends.
  int input() const { return input_.get(); }
  int output() const { return output_.get(); }
  int errors() const { return errors_.get(); }
  int exited() const { return exited_.get(); }
  pid_t id() const { return id_; }

  /// Returns the number of bytes written, or -1 and sets errno (EPIPE: its input is closed). Raises
  /// no SIGPIPE.
  ssize_t write(std::string_view text);
  /// Processor time of the process itself, in seconds.
  double processor_seconds() const;
  /// Kills the process and every process that it started, and waits for their end. Returns the exit
  /// status, also when the process had already ended by itself.
  ExitStatus kill();

 private:
  Process() = default;
  Result<> complete_start(const Plan& plan, int go, int report);

  pid_t id_ = -1;
  bool is_namespace_ = false;  ///< first process of a namespace, whose end ends all its processes
  std::string folder_;         ///< removed at the end
  /// Peak of this process, counted for the child from its fork.
  std::uint64_t inherited_memory_ = 0;
  Handle input_, output_, errors_, exited_;
};

}  // namespace troupe::actors::sandbox
