// WeightGather: the exchange of updated weights between replicas that divide the optimizer, which
// can go on while the next forward pass runs.
#pragma once

#include <cstdint>
#include <deque>

#include "engine/nn/arena_shards.h"
#include "engine/nn/bucket_values.h"

namespace troupe::engine::nn {

/// Copies the pieces of the replicas to each other, bucket by bucket from the beginning of the
/// arena, in the order in which a forward pass reads them. Collective over the replicas.
class WeightGather {
 public:
  /// Nothing to wait for.
  WeightGather() = default;
  /// Starts the exchange of `values` [shards.arena_count()]. The arguments outlive this.
  WeightGather(const ArenaShards& shards, const Tensor& values);

  /// Waits for the values before `end`.
  void finish_until(std::int64_t end);
  void finish();

 private:
  std::deque<BucketValues> started_;
};

}  // namespace troupe::engine::nn
