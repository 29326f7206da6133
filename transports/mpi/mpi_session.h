// Session: the lifetime of MPI in this process, and waiting for its requests.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "transports/mpi/mpi_world.h"

namespace troupe::transports::mpi {

/// Shared by all communicators of the process; the last one finalizes MPI.
class Session {
 public:
  static Result<std::shared_ptr<Session>> start(MpiOptions options);
  /// Waits for all ranks. Aborts the group instead during stack unwinding.
  ~Session();

  int rank() const { return rank_; }
  /// Calls work(begin, length) for each block of `bytes` bytes, and once for 0 bytes.
  template <class Work>
  void in_blocks(std::size_t bytes, const Work& work) const {
    for (std::size_t begin = 0; begin == 0 || begin < bytes; begin += options_.max_block_bytes)
      work(begin, std::min(bytes - begin, options_.max_block_bytes));
  }
  /// Waits for a request that moves `bytes` bytes at this rank. Unless `idle`, spins first for the
  /// time that the transfer should take, because MPI makes progress only inside its calls. Then
  /// sleeps for increasing intervals of 50 us to 2 ms.
  void wait(MPI_Request request, std::size_t bytes, std::string_view what, bool idle = false) const;
  /// The same for several requests. Absent deadline: that of the options. Returns their statuses.
  std::vector<MPI_Status> wait_all(std::vector<MPI_Request>& requests, std::size_t bytes,
                                   std::string_view what,
                                   std::optional<std::chrono::nanoseconds> deadline) const;
  /// Aborts the group when an MPI call failed.
  void check_success(int code, std::string_view what) const;
  /// Reports the reason and aborts all processes of the group.
  [[noreturn]] void abort(std::string_view why) const noexcept;

 private:
  explicit Session(MpiOptions options);
  /// Calls `test` until it returns true.
  template <class Test>
  void wait_for(const Test& test, std::size_t bytes, std::string_view what,
                std::optional<std::chrono::nanoseconds> deadline, bool idle) const;

  MpiOptions options_;
  int rank_ = 0;
  int exceptions_;  // uncaught when this was created
};

}  // namespace troupe::transports::mpi
