// RewardModels: rewards samples with trained models, each an outcome or a process reward model
// (reward_scoring.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/roles/reward_scoring.h"
#include "actors/runtime/message.h"
#include "engine/parallel/grid.h"
#include "engine/train/scoring.h"

namespace troupe::actors::roles {

/// One reward model of the sum.
struct RewardPart {
  std::string label;
  double weight = 1;
  std::unique_ptr<engine::models::Decoder> model;
  RewardScoring scoring;
};

class RewardModels {
 public:
  using Handled = Messages<protocol::ComputeRewards>;
  /// Errc::usage for a model without the head that its scoring requires: a score head of one label
  /// for an outcome, of two or more for a process, or a language head for placeholders. `mesh`
  /// (nullptr: one rank) outlives this; each model was created with its part of it.
  static Result<RewardModels> create(std::vector<RewardPart> parts,
                                     engine::train::ScoringOptions options,
                                     const engine::parallel::Mesh* mesh = nullptr);

  Result<std::vector<protocol::RewardResult>> on(protocol::ComputeRewards message);

 private:
  RewardModels(std::vector<RewardPart> parts, engine::train::ScoringOptions options,
               const engine::parallel::Mesh* mesh)
      : parts_(std::move(parts)), options_(options), mesh_(mesh) {}

  std::vector<RewardPart> parts_;
  engine::train::ScoringOptions options_;
  const engine::parallel::Mesh* mesh_;
};

}  // namespace troupe::actors::roles
