// The ranks that mpirun started, as a Communicator. MPI is linked into libtroupe_mpi.so, which is
// loaded only under mpirun.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>

#include "engine/base/errors/error.h"
#include "engine/base/hangs/rank_wait.h"
#include "engine/base/log/log.h"
#include "engine/parallel/communicator.h"

namespace troupe::transports::mpi {

/// Whether mpirun, or srun with --mpi=pmix, started this process, and the size and rank of its
/// group (1 and 0 otherwise; started_ranks.h). Does not load MPI.
bool under_mpirun();
int mpirun_size();
int mpirun_rank();

/// Has the kernel kill this process when its parent (mpirun) ends, so that no rank outlives it.
/// Call it at the start of main().
void die_with_mpirun();

/// On another rank than 0, when the ranks have failed, usually all alike: waits up to 3 s for
/// mpirun to end this process, as it does when rank 0 exits with an error. A rank that exits first
/// would make mpirun end rank 0 before that has reported the reason.
void let_rank_0_end_first();

struct MpiOptions {
  /// Maximum wait for the other ranks in one collective. Does not apply to broadcast_idle(), which
  /// waits until the group ends.
  std::chrono::nanoseconds deadline = std::chrono::minutes(10);
  /// Longer messages are sent in blocks of this size, because MPI counts are of type int.
  std::size_t max_block_bytes = std::size_t{1} << 30;
  /// Messages between ranks go through memory that they share, where all are on one host; otherwise
  /// MPI sends them.
  bool shared_memory = true;
  /// Receives the reason before this rank aborts the group.
  std::function<void(std::string_view)> on_abort = log_error;
  /// The exit code of this process, and so of mpirun, when it aborts the group because of an error
  /// of this kind: Errc::timeout for a missed deadline, Errc::internal for calls that do not match,
  /// otherwise Errc::closed.
  int (*exit_code)(Errc) = [](Errc) { return EXIT_FAILURE; };
  /// How waits are reported, and after which time without progress.
  progress::WaitReports reports = progress::wait_reports();
  std::chrono::milliseconds warn_after = progress::warn_after();
};

/// All ranks of this mpirun; callable once per process. MPI is finalized when the last communicator
/// (this one, or a split of it) is destroyed on every rank. MPI cannot wake a waiting rank, so
/// abort(), a missed deadline and an MPI error report the reason and abort all processes of the
/// group (MPI_Abort); they do not return. Errc::usage when mpirun did not start this process or on
/// a second call; Errc::unsupported when this build has no MPI or MPI cannot start.
Result<std::unique_ptr<engine::parallel::Communicator>> mpi_world(MpiOptions options = {});

}  // namespace troupe::transports::mpi
