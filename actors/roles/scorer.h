// Scorer: a model that computes log-probabilities and scores but is not trained: the reference of
// DPO and GRPO, a reward model. A reference may follow the policy (TR-DPO): its weights are then
// updated by messages and saved beside the policy's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/protocol/train.h"
#include "actors/roles/weight_assembly.h"
#include "actors/runtime/message.h"
#include "engine/parallel/grid.h"
#include "engine/train/scoring.h"

namespace troupe::actors::roles {

/// Makes the weights of a step durable and returns their path. Every rank of a group calls it.
using ScorerSaver =
    std::function<Result<std::string>(const protocol::Save& save, engine::models::Decoder& model)>;

class Scorer {
 public:
  using Handled = Messages<protocol::Logprobs, protocol::Score, protocol::Release,
                           protocol::LoadWeights, protocol::MapWeights, protocol::PrepareWeights,
                           protocol::MixWeights, protocol::Save>;
  /// `mesh` (nullptr: one rank) outlives this; `model` was created with its part of it, and the
  /// replicas of dp partition the sequences. Without `save` the weights are fixed: messages that
  /// update or save them are refused (Errc::bad_input).
  Scorer(std::unique_ptr<engine::models::Decoder> model, engine::train::ScoringOptions options,
         const engine::parallel::Mesh* mesh = nullptr, ScorerSaver save = {});

  Result<std::vector<float>> on(protocol::Logprobs message);
  Result<std::vector<float>> on(protocol::Score message);
  void on(protocol::Release);
  Result<> on(protocol::LoadWeights message);
  Result<> on(protocol::MapWeights message);
  Result<std::vector<float>> on(protocol::PrepareWeights message);
  Result<> on(protocol::MixWeights message);
  Result<std::string> on(protocol::Save message);

 private:
  Result<> may_move() const;

  std::unique_ptr<engine::models::Decoder> model_;
  engine::train::ScoringOptions options_;
  const engine::parallel::Mesh* mesh_;
  ScorerSaver save_;
  std::unique_ptr<engine::models::Decoder> shadow_;  ///< prepared weights, until they are mixed in
  std::optional<std::uint64_t> prepared_;
  WeightAssembly arriving_;
};

}  // namespace troupe::actors::roles
