// Scorer: a model that is only asked what it thinks of tokens: the reference of DPO and GRPO, a reward model.
#pragma once

#include <memory>

#include "actors/protocol/train.h"
#include "actors/runtime/message.h"
#include "engine/parallel/grid.h"
#include "engine/train/scoring.h"

namespace troupe::actors::roles {

class Scorer {
 public:
  using Handled = Messages<protocol::Logprobs, protocol::Score, protocol::Release>;
  /// `mesh` (nullptr: one rank) outlives this; `model` was made with its tp, its replicas share the sequences.
  Scorer(std::unique_ptr<engine::models::Decoder> model, engine::train::ScoringOptions options,
         const engine::parallel::Mesh* mesh = nullptr);

  Result<std::vector<float>> on(protocol::Logprobs message);
  Result<std::vector<float>> on(protocol::Score message);
  void on(protocol::Release);

 private:
  std::unique_ptr<engine::models::Decoder> model_;
  engine::train::ScoringOptions options_;
  const engine::parallel::Mesh* mesh_;
};

}  // namespace troupe::actors::roles
