// BucketValues: a range of the arena that the replicas exchange in one operation.
#pragma once

#include <vector>

#include "engine/collectives/tensor_group.h"

namespace troupe::engine::nn {

/// Values [begin, end) of an arena, divided over the ranks of a group, and the operation that uses
/// them.
struct BucketValues {
  /// `lengths`: those of the ranks' pieces, in their order.
  BucketValues(const Tensor& arena, std::int64_t first, std::int64_t last,
               std::vector<std::size_t> lengths, int rank);

  std::int64_t begin, end;
  std::vector<std::size_t> counts;
  Tensor all, mine;  ///< the values, and this rank's piece of them
  collectives::Pending started;
};

}  // namespace troupe::engine::nn
