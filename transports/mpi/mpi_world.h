// The ranks that mpirun started, as a Communicator. MPI itself is behind libtroupe_mpi.so, which is
// loaded only for that.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/parallel/communicator.h"

namespace troupe::transports::mpi {

/// Whether mpirun started this process, and its place among those it started (1 and 0 when it did
/// not). No MPI is needed for it.
bool under_mpirun();
int mpirun_size();
int mpirun_rank();

/// From now on this process is killed when its parent (mpirun) ends, so that nobody stays behind.
/// To be called first thing in main().
void die_with_mpirun();

struct MpiOptions {
  /// The longest wait for the others in one collective (not of broadcast_idle, which only the end
  /// of the group ends).
  std::chrono::nanoseconds deadline = std::chrono::minutes(10);
  /// Longer messages travel in blocks of this many bytes: MPI counts in int.
  std::size_t largest_block = std::size_t{1} << 30;
  /// Receives why this rank ends the group, before it does.
  std::function<void(std::string_view)> last_words = log_error;
};

/// All ranks of this mpirun; once a process. MPI ends when the last communicator (this one, or one
/// split off) is destroyed, after all ranks have come to that point. MPI cannot wake a rank that
/// waits, so abort(), a missed deadline and an error of MPI say why and end all processes of the
/// group (MPI_Abort); they do not return. Errc::usage when mpirun did not start this process or it
/// was called before; Errc::unsupported when this build has no MPI or it cannot start.
Result<std::unique_ptr<engine::parallel::Communicator>> mpi_world(MpiOptions options = {});

}  // namespace troupe::transports::mpi
