// MPI from its start to its end, and how one waits in it.
#pragma once

#include <mpi.h>

#include <memory>
#include <string_view>

#include "transports/mpi/mpi_world.h"

namespace troupe::transports::mpi {

/// Shared by all communicators of the process; the last one ends MPI.
class Session {
 public:
  static Result<std::shared_ptr<Session>> start(MpiOptions options);
  /// Waits for all ranks to come here. Ends the group instead when an exception is on its way
  /// through.
  ~Session();

  int rank() const { return rank_; }
  std::size_t largest_block() const { return options_.largest_block; }
  /// Until the request is done, which moves `bytes` bytes at this rank. Spins as long as that
  /// should take, since MPI moves them only when it is called (not when `idle`); then naps, longer
  /// and longer: 50 us to 2 ms.
  void wait(MPI_Request request, std::size_t bytes, std::string_view what, bool idle = false) const;
  /// Ends the group when an MPI call did not succeed.
  void must(int code, std::string_view what) const;
  /// Says why, and ends all processes of the group.
  [[noreturn]] void end(std::string_view why) const noexcept;

 private:
  explicit Session(MpiOptions options);

  MpiOptions options_;
  int rank_ = 0;
  int exceptions_;  // on their way when this was made
};

}  // namespace troupe::transports::mpi
