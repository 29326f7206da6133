// ArenaShards: the flat arena of the trained parameters, divided over the replicas (ZeRO, stage 1:
// Rajbhandari et al. 2020). Every replica holds all weights and gradients, but the optimizer state
// only of its shard.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/collectives/tensor_group.h"
#include "engine/nn/parameters.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::nn {

/// The arena is divided into buckets, and every bucket over all ranks, so that each collective has
/// work for every rank. Boundaries are those of the blocks by which Device::sum_of_squares() adds:
/// the norm of divided gradients has the bits of the whole.
class ArenaShards {
 public:
  static constexpr std::int64_t bucket_values = std::int64_t{1} << 20;

  /// `parameters` are the trained ones. `dp` outlives this. `by_tensor`: the norm is a sum over
  /// tensors, as in a tensor-parallel group (nn::sum_of_squares), and not over the whole arena.
  ArenaShards(const Parameters& parameters, parallel::Communicator& dp, bool by_tensor,
              std::int64_t bucket = bucket_values);

  /// Values [begin, end) of the arena, at `at` in the shard of `rank`.
  struct Piece {
    std::int64_t begin, end, at;
    int rank;
    std::int64_t size() const { return end - begin; }
  };

  parallel::Communicator& dp() const { return dp_; }
  /// The same ranks, for tensors of the parameters' device.
  collectives::TensorGroup& tensors() const { return *tensors_; }
  bool by_tensor() const { return by_tensor_; }
  /// Number of values in the shard of this rank, and in the arena.
  std::int64_t count() const { return counts_[static_cast<std::size_t>(dp_.rank())]; }
  std::int64_t arena_count() const { return pieces_.back().end; }
  /// All pieces in the order of the arena: those of bucket b by rank, from b * ranks.
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::size_t buckets() const { return pieces_.size() / counts_.size(); }
  /// Values [first, second) of a bucket, and the lengths of its pieces by rank.
  std::pair<std::int64_t, std::int64_t> range(std::size_t bucket) const;
  std::vector<std::size_t> counts(std::size_t bucket) const;
  /// The parts of the pieces of `rank` within [begin, end) of the arena.
  std::vector<Piece> within(std::int64_t begin, std::int64_t end, int rank) const;
  std::vector<Piece> mine(std::int64_t begin, std::int64_t end) const {
    return within(begin, end, dp_.rank());
  }
  /// Ends of the blocks of the norm.
  const std::vector<std::int64_t>& block_ends() const { return block_ends_; }

 private:
  void add_bucket(std::size_t first_block, std::size_t last_block);

  parallel::Communicator& dp_;
  std::unique_ptr<collectives::TensorGroup> tensors_;
  bool by_tensor_;
  std::vector<std::int64_t> block_ends_;
  std::vector<Piece> pieces_;
  std::vector<std::int64_t> counts_;  ///< by rank
};

/// nn::sum_of_squares() and nn::first_nonfinite_parameter() of gradients after
/// reduce_scatter_gradients(), with the same result.
double sum_of_squares(Parameters& parameters, const ArenaShards& shards,
                      parallel::Communicator* tp);
std::string first_nonfinite_parameter(Parameters& parameters, const ArenaShards& shards,
                                      parallel::Communicator* tp);
/// For each parameter, whether its part on this tensor-parallel rank has a gradient other than 0.
std::vector<bool> nonzero_gradients(const Parameters& parameters, const ArenaShards& shards);

}  // namespace troupe::engine::nn
