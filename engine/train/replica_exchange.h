// ReplicaExchange: gradients and weights that the replicas of a model exchange for an update, while
// passes run or between them.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/models/decoder.h"
#include "engine/nn/forward_context.h"
#include "engine/nn/gradient_sums.h"
#include "engine/nn/weight_gather.h"

namespace troupe::engine::train {

/// What is exchanged while passes run: nothing; gradients, during the backward pass of the last
/// micro-batch; these and, with a divided optimizer, weights, during the next forward pass.
enum class Overlap { none, gradients, all };
constexpr std::array<std::string_view, 3> names_of(Overlap) {
  return {"none", "gradients", "all"};
}

class ReplicaExchange {
 public:
  /// `replicas` (nullptr: none) have the same part of the model; `shards` (nullptr: none) divide
  /// the optimizer over them, else gradients are summed in buckets of `bucket` values. The
  /// arguments outlive this.
  ReplicaExchange(models::Decoder& model, parallel::Communicator* replicas,
                  const nn::ArenaShards* shards, Overlap overlap, std::int64_t bucket);
  ReplicaExchange(const ReplicaExchange&) = delete;

  /// Hooks of the passes of an update; `last`: of those of the last micro-batch.
  const nn::PassHooks* hooks(bool last) const { return last ? &last_hooks_ : &hooks_; }
  /// States that this rank has run all passes of an update: every rank starts the sums that some
  /// rank may have started.
  void passes_ended();
  /// Sums the gradients over the replicas, and those that other ranks have, too. Waits.
  void sum_gradients();

  /// Receives the exchange of the weights after an update (AdamW::step); nullptr: not overlapped.
  nn::WeightGather* gather() { return overlap_ == Overlap::all ? &weights_ : nullptr; }
  /// Waits for the weights of the last update. Call it before they are read outside of a pass with
  /// hooks.
  void finish_weights() { weights_.finish(); }

 private:
  void find_layers();
  void sum_parts();

  models::Decoder& model_;
  Overlap overlap_;
  std::optional<nn::GradientSums> sums_;
  nn::WeightGather weights_;
  /// By block: the first value of the arena whose gradients are complete after its backward pass,
  /// and the end of the values that its forward pass and earlier ones read.
  std::vector<std::int64_t> complete_from_, read_until_;
  nn::PassHooks hooks_, last_hooks_;
};

}  // namespace troupe::engine::train
