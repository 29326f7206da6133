// BucketValues: a range of the arena that the replicas exchange in one operation.
#pragma once

#include <span>
#include <vector>

#include "engine/ops/host_values.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

/// Values [begin, end) of an arena in host memory, divided over the ranks of a group, and the
/// operation that uses them.
struct BucketValues {
  /// `counts`: lengths of the ranks' pieces, in their order.
  BucketValues(ops::Device& device, const Tensor& arena, std::int64_t first, std::int64_t last,
               std::vector<std::size_t> lengths, int rank);
  /// Waits for the operation and stores the values.
  void finish();

  std::int64_t begin, end;
  std::vector<std::size_t> counts;
  ops::HostValues host;
  std::span<float> mine;  ///< this rank's piece
  parallel::Pending started;
};

/// Lengths in bytes of pieces of floats.
std::vector<std::size_t> bytes_of(std::span<const std::size_t> counts);

}  // namespace troupe::engine::nn
