// Process: an untrusted program in a sandbox. kill() ends it and every process that it started.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "actors/sandbox/helper_messages.h"
#include "actors/sandbox/helper_process.h"
#include "actors/sandbox/plan.h"
#include "engine/base/errors/error.h"
#include "engine/base/files/descriptor.h"

namespace troupe::actors::sandbox {

/// Exit status of a process.
struct ExitStatus {
  int status = 0;  ///< as returned by wait()
  /// Peak memory of its largest process in bytes; 0: unknown.
  std::uint64_t peak_memory = 0;
  /// The limit of its sandbox for which it was killed, and what it had used: bytes or seconds.
  Exceeded exceeded = Exceeded::nothing;
  std::uint64_t used = 0;
  /// The helper ended or did not answer, so the process was killed through no fault of its own.
  bool helper_lost = false;
  /// "exited with code 3", "was killed by signal 11 (Segmentation fault)".
  std::string text() const;
};

class Process {
 public:
  /// Starts the program by the helper, and by a new one if that has ended or does not answer.
  /// Errc::not_found (no such program), unsupported (the kernel denies isolation; the message names
  /// the setting that does without it), io, closed (no helper answers).
  static Result<Process> start(HelperSupervisor& helpers, const SandboxPlan& plan);
  Process(Process&&) noexcept = default;
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
  /// Processor time of the process and its descendants at the last census, in seconds; nullopt: the
  /// helper has ended, and the process with it.
  std::optional<double> processor_seconds() const;
  /// Kills the process and every process that it started, and waits for their end. Returns the exit
  /// status, also when the process had already ended by itself.
  ExitStatus kill();

 private:
  Process() = default;
  static Result<Process> start_by(std::shared_ptr<HelperProcess> helper, const SandboxPlan& plan);
  void end_without_helper() const;

  pid_t id_ = -1;
  bool in_namespaces_ = true;
  Descriptor input_, output_, errors_, exited_;
  std::shared_ptr<HelperProcess> helper_;
  Descriptor channel_;  ///< to the helper; closing it kills the process
};

}  // namespace troupe::actors::sandbox
