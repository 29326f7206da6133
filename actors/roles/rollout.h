// Rollout: samples completions from its own copy of the policy's weights, which are replaced
// between requests, in two phases.
#pragma once

#include <memory>
#include <optional>

#include "actors/protocol/generate.h"
#include "actors/protocol/train.h"
#include "actors/runtime/message.h"
#include "engine/generate/generator.h"
#include "engine/parallel/grid.h"

namespace troupe::actors::roles {

/// Completions of the requests, in their order. `decode`, which may be empty, gives the texts that
/// the generator does not; `updates`: of the weights.
Result<std::vector<protocol::Completion>> sample_completions(
    engine::generate::Generator& generator, protocol::Generate message,
    const engine::generate::TextDecoder& decode, std::uint64_t updates);

/// The versions of consecutive tokens as runs.
std::vector<protocol::VersionRun> version_runs(const std::vector<std::uint64_t>& versions);

class Rollout {
 public:
  using Handled = Messages<protocol::Generate, protocol::PrepareWeights, protocol::CommitWeights>;
  /// `shadow` has the shape of `model` and receives prepared weights. A model with an adapter needs
  /// none (nullptr): only the adapter is sent. `config.decode` gives the text of completions.
  /// Errc::usage for invalid sizes of the generator.
  static Result<Rollout> create(std::unique_ptr<engine::models::Decoder> model,
                                std::unique_ptr<engine::models::Decoder> shadow,
                                engine::generate::GeneratorConfig config,
                                const engine::parallel::Mesh* mesh = nullptr);

  Result<std::vector<protocol::Completion>> on(protocol::Generate message);
  Result<std::vector<float>> on(protocol::PrepareWeights message);
  Result<> on(protocol::CommitWeights message);

 private:
  Rollout(std::unique_ptr<engine::models::Decoder> model,
          std::unique_ptr<engine::models::Decoder> shadow, engine::generate::Generator generator,
          const engine::generate::GeneratorConfig& config, const engine::parallel::Mesh* mesh);
  Result<std::vector<protocol::Completion>> draw(protocol::Generate message);
  std::vector<float> probe(engine::models::Decoder& model, const protocol::Weights& weights);
  std::vector<float> prepare_adapter(const protocol::Weights& weights);

  std::unique_ptr<engine::models::Decoder> model_, shadow_;
  engine::generate::Generator generator_;
  engine::generate::TextDecoder decode_;
  engine::ops::Precision precision_;
  const engine::parallel::Mesh* mesh_;
  std::uint64_t version_ = 0, updates_ = 0;  ///< of the weights in use
  std::optional<std::uint64_t> prepared_;    ///< version of the prepared weights
  std::uint64_t prepared_updates_ = 0;
  std::vector<float> prepared_adapter_;
};

}  // namespace troupe::actors::roles
