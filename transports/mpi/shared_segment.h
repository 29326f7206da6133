// SharedSegment: memory that all ranks of a group on one host have mapped.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>

#include "transports/mpi/mpi_session.h"

namespace troupe::transports::mpi {

/// An anonymous file (memfd_create(2)) that rank 0 of the group creates and the others open through
/// /proc/PID/fd, so that it needs neither space in /dev/shm nor a name. It begins as zeros, and its
/// pages take memory when they are written first.
class SharedSegment {
 public:
  /// Collective over `group`. Null on every rank when one of them cannot map the memory.
  static std::unique_ptr<SharedSegment> create(const Session& session, MPI_Comm group,
                                               std::size_t bytes);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit SharedSegment(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
};

}  // namespace troupe::transports::mpi
