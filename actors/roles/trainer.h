// Trainer: a policy, a critic or a reward model. Updates, scores, publishes and saves one set of
// weights.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "actors/protocol/train.h"
#include "actors/roles/weight_assembly.h"
#include "actors/runtime/message.h"
#include "engine/checkpoint/write_checkpoint.h"
#include "engine/train/trainer.h"

namespace troupe::actors::roles {

using engine::checkpoint::CheckpointWrite;

/// Starts to write checkpoint `step`. Every rank of a group calls it.
using Saver = std::function<Result<std::unique_ptr<CheckpointWrite>>(
    std::int64_t step, const protocol::RunState& state, engine::train::Trainer& trainer)>;

class Trainer {
 public:
  using Handled =
      Messages<protocol::TrainStep, protocol::Logprobs, protocol::Score, protocol::Publish,
               protocol::ReadWeights, protocol::Save, protocol::FinishSave, protocol::Release>;
  /// `losses` creates a loss from a LossSpec. `mesh` (nullptr: one rank) is the one that `trainer`
  /// was created with, and outlives this. `label`: the name under which rank 0 reports the memory
  /// of its device at the end, if it has saved; empty: not reported.
  Trainer(std::unique_ptr<engine::train::Trainer> trainer, engine::loss::LossTable losses,
          Saver save, const engine::parallel::Mesh* mesh = nullptr, std::string label = "");
  Trainer(Trainer&&) = default;
  ~Trainer();

  Result<protocol::StepStats> on(protocol::TrainStep message);
  std::vector<float> on(protocol::Logprobs message);
  std::vector<float> on(protocol::Score message);
  protocol::Weights on(protocol::Publish message);
  Result<protocol::WeightPart> on(protocol::ReadWeights message);
  Result<std::string> on(protocol::Save message);
  Result<std::string> on(protocol::FinishSave message);
  void on(protocol::Release) {}  ///< the base is part of the trained model: nothing to free

 private:
  std::unique_ptr<engine::train::Trainer> trainer_;
  engine::loss::LossTable losses_;
  Saver save_;
  const engine::parallel::Mesh* mesh_;
  std::string label_;
  bool saved_ = false;
  /// Rank 0: what ReadWeights reads, and the values before them, where a delta may refer to them.
  BaseWeights published_, before_;
  std::unique_ptr<CheckpointWrite> writing_;  ///< reads the trainer's values
  std::optional<Error> not_written_;          ///< why the last checkpoint was not
};

}  // namespace troupe::actors::roles
