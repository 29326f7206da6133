// What the program does when a thread or a rank hangs: warnings, deadlines, and the end of the
// process.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/hangs/hang_watch.h"
#include "engine/parallel/thread_group.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::run {

/// Prints `why` as the program prints the failure of a command, and ends the process at once with
/// the exit code of a timeout. Files that are written under other names stay incomplete there.
[[noreturn]] void end_at_deadline(const std::string& why);

/// Watches the threads of this process during its lifetime (docs/operations.md). A thread that
/// makes no progress for `limit` and 5 s ends the process; 0: none does.
class HangGuard {
 public:
  /// `process` begins each warning; by default the rank under mpirun.
  explicit HangGuard(std::chrono::seconds limit = std::chrono::seconds(0));
  HangGuard(std::chrono::seconds limit, std::string process);

 private:
  progress::HangWatch watch_;
};

/// `error` with the hangs that are known. If it is a timeout, ends the process within 5 s unless
/// the command ends before: what did not answer cannot be waited for.
Error with_hangs(Error error);

/// Options of groups of ranks whose waits for each other end after `timeout` seconds
/// (parallel.timeout), and with them the process.
transports::mpi::MpiOptions mpi_options(std::int64_t timeout);
engine::parallel::ThreadGroupOptions thread_options(std::int64_t timeout);

}  // namespace troupe::launch::run
