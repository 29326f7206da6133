// Rollout: samples completions from its own copy of the policy's weights, which are replaced in two
// phases, between requests or between tokens.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "actors/protocol/generate.h"
#include "actors/protocol/train.h"
#include "actors/roles/rollout_service.h"
#include "actors/roles/weight_assembly.h"
#include "actors/runtime/message.h"
#include "engine/parallel/grid.h"
#include "engine/serving/engine.h"

namespace troupe::actors::roles {

/// The sample of a generation. `decode`, which may be empty, gives the text that the generator does
/// not; `updates`: of the weights.
protocol::Completion completion_of(engine::generate::Generation done,
                                   const engine::generate::TextDecoder& decode,
                                   std::uint64_t updates);

/// The versions of consecutive tokens as runs.
std::vector<protocol::VersionRun> version_runs(const std::vector<std::uint64_t>& versions);

class Rollout {
 public:
  using Handled =
      Messages<protocol::Generate, protocol::LoadWeights, protocol::MapWeights,
               protocol::PrepareWeights, protocol::CommitWeights, protocol::CancelSamples>;
  using Interrupting =
      Messages<protocol::LoadWeights, protocol::MapWeights, protocol::PrepareWeights,
               protocol::CommitWeights, protocol::CancelSamples>;
  /// `shadow` has the shape of `model` and receives prepared weights. Both read the array of a
  /// message where it lies, if they need no part of it (engine/nn/borrowed_values.h). A model with
  /// an adapter needs none (nullptr): only the adapter is sent. `config.decode` gives the text of
  /// completions. Errc::usage for invalid sizes of the generator.
  static Result<Rollout> create(std::unique_ptr<engine::models::Decoder> model,
                                std::unique_ptr<engine::models::Decoder> shadow,
                                engine::generate::GeneratorConfig config,
                                const engine::parallel::Mesh* mesh = nullptr);

  /// Lets in_steps() return after each token, so that weights are replaced between two tokens with
  /// the consequences of `change`. Otherwise it has one step.
  void interrupt_generation(const engine::generate::WeightChange& change) { change_ = change; }

  /// Gives every version of the weights to `service`. If it makes samples, the reply to Generate
  /// has the requested ones that are complete after a second at most, possibly none; the sender
  /// asks again for the others.
  void serve(std::shared_ptr<RolloutService> service) { service_ = std::move(service); }

  Result<std::vector<protocol::Completion>> on(protocol::Generate message);
  /// The same, one token of every running sample at a time.
  Stepwise<std::vector<protocol::Completion>> in_steps(protocol::Generate message);
  std::uint64_t on(const protocol::CancelSamples& message);
  Result<> on(protocol::LoadWeights message);
  Result<> on(protocol::MapWeights message);
  Result<std::vector<float>> on(protocol::PrepareWeights message);
  Result<> on(protocol::CommitWeights message);

 private:
  Rollout(std::unique_ptr<engine::models::Decoder> model,
          std::unique_ptr<engine::models::Decoder> shadow,
          std::unique_ptr<engine::serving::Engine> engine,
          const engine::generate::GeneratorConfig& config, const engine::parallel::Mesh* mesh);
  Result<std::vector<protocol::Completion>> draw(protocol::Generate message);
  Result<> begin(protocol::Generate message);
  std::optional<std::vector<protocol::Completion>> step();
  std::vector<float> probe(engine::models::Decoder& model, const protocol::Weights& weights);
  void use_shadow();
  std::vector<float> prepare_adapter(const protocol::Weights& weights);
  Stepwise<std::vector<protocol::Completion>> take_samples(const protocol::Generate& message);

  std::unique_ptr<engine::models::Decoder> model_, shadow_;
  std::unique_ptr<engine::serving::Engine> engine_;
  engine::generate::TextDecoder decode_;
  engine::ops::Precision precision_;
  const engine::parallel::Mesh* mesh_;
  bool borrows_;  ///< reads the weights in the message that brought them
  std::optional<engine::generate::WeightChange> change_;  ///< set: generation can be interrupted
  /// Of the Generate in progress; finished ones are filled.
  std::vector<protocol::Completion> drawn_;
  std::vector<Result<engine::generate::Generation>> ended_;  ///< in the step in progress
  std::uint64_t version_ = 0;                                ///< of the weights in use
  /// Optimizer updates of these weights, and of those that sampled tokens of the Generate in
  /// progress.
  std::map<std::uint64_t, std::uint64_t> updates_ = {{0, 0}};
  WeightAssembly arriving_;
  /// The weights in use, where they lie as they were sent: a delta refers to them.
  BaseWeights base_;
  SharedArray<float> prepared_values_;     ///< base_ after the commit
  std::optional<std::uint64_t> prepared_;  ///< version of the prepared weights
  std::uint64_t prepared_updates_ = 0;
  std::vector<float> prepared_adapter_;
  std::shared_ptr<RolloutService> service_;  ///< or null
};

}  // namespace troupe::actors::roles
