// HelperProcess: the sandbox helper (helper.h) as its parent has it, and its supervision.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/files/descriptor.h"

namespace troupe::actors::sandbox {

/// Longest wait for an answer of the helper. Longer than what the helper itself waits for, so that
/// its message arrives; a helper that is stopped for less than this loses nothing.
inline constexpr std::chrono::seconds helper_timeout{12};

/// A helper process until it ends or is given up. For one thread.
class HelperProcess {
 public:
  /// Executes this program as a helper. Errc::io.
  static Result<std::shared_ptr<HelperProcess>> start();
  HelperProcess(const HelperProcess&) = delete;
  /// Ends the helper and all of its programs.
  ~HelperProcess();

  pid_t id() const { return id_; }
  /// False when it has ended or was given up.
  bool running() const;
  /// Starts a program: `streams` are {socket, stdin, stdout, stderr}. False when it has ended.
  bool send(std::span<const int> streams) const;
  /// Kills a helper that has ended or does not answer, and its programs. `why`: of the latter.
  void give_up(const std::string& why);
  /// How it ended: "was killed by signal 9 (Killed)"; "" while it runs.
  const std::string& ending() const { return ending_; }

 private:
  HelperProcess() = default;
  void reap();

  pid_t id_ = -1;
  Descriptor socket_, exited_;
  std::string ending_;
};

/// Starts the helper at its first use and again when it has ended. For one thread.
class HelperSupervisor {
 public:
  /// The running helper. Errc::io when it cannot be started.
  Result<std::shared_ptr<HelperProcess>> helper();

 private:
  std::shared_ptr<HelperProcess> helper_;
};

}  // namespace troupe::actors::sandbox
