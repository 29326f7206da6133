// Logical tensors: whole tensors, gathered from the parts that the ranks of a tensor-parallel group
// hold, and scattered to them. Published weights are logical tensors: they do not depend on the
// grid.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/nn/arena_shards.h"
#include "engine/nn/parameters.h"
#include "engine/parallel/grid.h"

namespace troupe::engine::nn {

/// Number of elements of all logical tensors.
std::int64_t logical_count(const Parameters& parameters);

/// All logical values, flat, in the order of models::parameter_list, on rank 0 of the group; an
/// empty vector on the others. The tensor-parallel ranks of dp index 0 must all call it; the other
/// replicas return at once.
std::vector<float> gather_logical(const Parameters& parameters, const parallel::Mesh& mesh);
/// Gathers another arena of [parameters.count()]: gradients, moments. With `shards`, the arena is
/// [shards->count()], and all ranks of the group must call it.
std::vector<float> gather_logical(const Parameters& parameters, const Tensor& arena,
                                  const parallel::Mesh& mesh, const ArenaShards* shards = nullptr);

/// The same for a model whose layers are divided over the pipeline stages of `mesh`: `whole`
/// describes all its tensors, `stage` are those of this rank. All ranks of the group must call it.
std::vector<float> gather_logical(const Parameters& whole, const Parameters& stage,
                                  const parallel::Mesh& mesh);

/// Calls visit(values) on rank 0 for one logical tensor after the other, which are what
/// gather_logical() returns, so that no rank holds them all.
using VisitTensor = std::function<void(std::span<const float> values)>;
void gather_each(const Parameters& parameters, const parallel::Mesh& mesh,
                 const VisitTensor& visit);
void gather_each(const Parameters& whole, const Parameters& stage, const parallel::Mesh& mesh,
                 const VisitTensor& visit);

/// Sets this rank's part of every parameter from gather_logical's array, the tensors of `whole`:
/// `parameters`, or with pipeline stages a description of all of them. No communication. Another
/// length is a Bug.
void scatter_logical(std::span<const float> logical, const Parameters& whole,
                     Parameters& parameters);

/// Copies this rank's part of one parameter from its logical values. Another length is a Bug.
void copy_shard(std::span<const float> logical, const Parameter& parameter, std::span<float> part);

/// Gathers the logical tensors of several arenas one by one.
class LogicalTensors {
 public:
  /// `arenas`: [parameters.count()] each. Collective over `tp` (nullptr: one rank). The arguments
  /// must outlive this.
  LogicalTensors(const Parameters& parameters, std::vector<Tensor> arenas,
                 parallel::Communicator* tp);
  /// The same with `divided` arenas, [shards.count()] each, whose numbers follow those of `arenas`.
  /// Collective over the whole group of `mesh`.
  LogicalTensors(const Parameters& parameters, std::vector<Tensor> arenas,
                 std::vector<Tensor> divided, const ArenaShards& shards,
                 const parallel::Mesh& mesh);

  /// The tensors of all pipeline stages: `whole` describes them, `stage` reads those of this rank's
  /// stage, and its owner is the first stage that has a tensor. Collective over the whole group of
  /// `mesh`.
  LogicalTensors(const Parameters& whole, std::unique_ptr<LogicalTensors> stage,
                 const parallel::Mesh& mesh);

  const Parameters& parameters() const { return parameters_; }
  /// The whole tensor `parameter` of `arena`: on every rank, with shards only on the replica of
  /// rank 0, with stages only on rank 0. Every rank calls it for the same tensor.
  std::vector<float> gather(std::size_t arena, std::size_t parameter);

 private:
  struct Part {
    std::int64_t begin, end;  ///< along the axis of the shard
  };
  void exchange_parts();
  /// This tensor-parallel rank's part of a tensor; collective over the replicas for a divided
  /// arena.
  std::vector<float> own_part(std::size_t arena, std::size_t parameter);
  /// gather() from the stage that has the tensor.
  std::vector<float> gather_from_stage(std::size_t arena, std::size_t parameter);

  const Parameters& parameters_;
  std::vector<Tensor> arenas_;
  std::size_t undivided_;                ///< number of arenas that are whole at every replica
  const ArenaShards* shards_ = nullptr;  ///< of the other arenas
  parallel::Communicator* tp_;
  std::vector<std::int64_t> starts_;                 ///< offset of each parameter in an arena
  std::vector<Part> parts_;                          ///< [ranks, parameters]
  std::unique_ptr<LogicalTensors> stage_ = nullptr;  ///< with pipeline stages
  const parallel::Mesh* mesh_ = nullptr;             ///< where stage_ is there
  std::vector<int> owners_;                          ///< stage of each parameter
};

}  // namespace troupe::engine::nn
