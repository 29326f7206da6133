// GradientSums: the sums of the gradients over the replicas, in buckets, which can start while a
// backward pass runs.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "engine/nn/arena_shards.h"
#include "engine/nn/bucket_values.h"
#include "engine/nn/parameters.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

/// Sums the gradients of the trained parameters over `replicas`, in the order of the ranks, from
/// the last bucket of the arena to the first, as a backward pass completes them. No bit depends on
/// when a bucket is started. Two buckets are in flight at a time.
///
/// Every rank starts the buckets in the same order, and no other operation of `replicas` between
/// two that another rank starts after them: call start_from() with the same last value on all ranks
/// before they use the group for something else.
class GradientSums {
 public:
  /// `shards` (nullptr: none): only this rank's pieces get their sums, the rest of the gradients
  /// stays. Otherwise all ranks get all sums, in buckets of `bucket` values. The arguments outlive
  /// this.
  GradientSums(Parameters& trained, parallel::Communicator& replicas, const ArenaShards* shards,
               std::int64_t bucket = ArenaShards::bucket_values);

  /// Starts the buckets that begin at value `begin` of the arena or later. Their gradients are
  /// complete on this rank.
  void start_from(std::int64_t begin);
  /// Starts the other buckets, waits for all, and is then ready for the next update.
  void finish();

 private:
  struct Bucket {
    std::int64_t begin, end;
    std::vector<std::size_t> counts;  ///< by rank
  };
  void complete(const Bucket& bucket);
  void start(const Bucket& bucket);
  void finish_first();

  Parameters& parameters_;
  std::unique_ptr<collectives::TensorGroup> replicas_;
  bool gathers_;  ///< all ranks get all sums
  std::vector<Bucket> buckets_;
  std::size_t waiting_;               ///< buckets [0, waiting_) are not started
  std::deque<BucketValues> started_;  ///< in the order of their start
};

/// GradientSums of complete gradients, waited for.
void reduce_scatter_gradients(Parameters& trained, const ArenaShards& shards);

/// The value of the arena of the trained parameters from which on all gradients are complete, when
/// those of the modules are that `complete` names: prefixes of parameters ("model.layers.3."). A
/// gradient that tensor-parallel ranks sum, or that has a second part until the end of the pass, is
/// never complete.
std::int64_t complete_from(const Parameters& trained, std::span<const std::string> complete);

}  // namespace troupe::engine::nn
