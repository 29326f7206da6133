// Logical tensors: what the ranks of a tensor-parallel group hold in parts, put together, and
// shared out again. Checkpoints and published weights are logical: they do not know the grid that
// made them.
#pragma once

#include <span>
#include <vector>

#include "engine/nn/parameters.h"
#include "engine/parallel/grid.h"

namespace troupe::engine::nn {

/// Values of all logical tensors together.
std::int64_t logical_count(const Parameters& parameters);

/// Every logical value, flat, in the order of models::parameter_list. Rank 0 of the group gets
/// them, the others an empty vector. The tensor-parallel ranks of dp index 0 must all call it; the
/// other replicas hold the same and return at once.
std::vector<float> gather_logical(const Parameters& parameters, const parallel::Mesh& mesh);
/// The same for another arena of [parameters.count()]: gradients, moments.
std::vector<float> gather_logical(const Parameters& parameters, const Tensor& arena,
                                  const parallel::Mesh& mesh);

/// Sets every value from gather_logical's array, of which this rank takes its part. No
/// communication; another length is a Bug.
void scatter_logical(std::span<const float> logical, Parameters& parameters);

/// This rank's part of one parameter, from its logical values. Another length is a Bug.
void take_part(std::span<const float> logical, const Parameter& parameter, std::span<float> part);

/// The logical tensors of several arenas, one by one and in any order, as the writer of a file asks
/// for them. Rank 0 of the group calls read() and at last finish(); the others serve().
class LogicalTensors {
 public:
  /// `arenas`: [parameters.count()] each. Collective over `tp` (nullptr: this rank has everything).
  /// What is given must outlive this.
  LogicalTensors(const Parameters& parameters, std::vector<Tensor> arenas,
                 parallel::Communicator* tp);

  const Parameters& parameters() const { return parameters_; }
  /// Tensor `parameter` of `arena`, whole.
  std::vector<float> read(std::size_t arena, std::size_t parameter);
  /// Lets the ranks go that serve.
  void finish();
  /// Gives this rank's parts as rank 0 asks for them, until it has finished.
  void serve();

  /// What read() and serve() come to: all ranks call it for the same tensor, all get it whole.
  std::vector<float> gather(std::size_t arena, std::size_t parameter);

 private:
  struct Part {
    std::int64_t begin, end;  ///< along the axis of the shard
  };
  bool alone() const { return tp_ == nullptr; }

  const Parameters& parameters_;
  std::vector<Tensor> arenas_;
  parallel::Communicator* tp_;
  std::vector<std::int64_t> starts_;  ///< where each parameter begins in an arena
  std::vector<Part> parts_;           ///< [ranks, parameters]
};

}  // namespace troupe::engine::nn
