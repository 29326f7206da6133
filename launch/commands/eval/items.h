// EvalItems: the items of an evaluation, as the JSON lines of its output file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/roles/reward_models.h"
#include "actors/roles/rules/rules.h"
#include "algorithms/rollout/evaluation.h"
#include "engine/data/loader/dataset.h"
#include "engine/generate/generator.h"
#include "launch/config/run_config.h"
#include "launch/model/model.h"
#include "launch/run/text_model.h"

namespace troupe::launch::commands {

class EvalItems {
 public:
  /// Loads the model, the data and the rules. `config` outlives this. Throws Failure.
  EvalItems(const config::RunConfig& config, const model::ModelOptions& model);
  EvalItems(const EvalItems&) = delete;

  std::size_t size() const { return data_.examples.size(); }
  const engine::adapter::ModelFolders& folders() const { return model_.folders(); }
  /// The files that the items were read from.
  const std::vector<engine::data::FileFingerprint>& files() const { return data_.files; }
  /// Number of items to evaluate at once.
  std::size_t at_once() const;

  /// The lines of items [first, first + count): {"id", "prompt", "answer", "completions",
  /// "rewards", "parts", "finish_reasons", "tokens"}, and "failures" where a reward failed. They
  /// depend on no other item. Throws Failure.
  std::vector<Json> evaluate(std::size_t first, std::size_t count);

 private:
  std::vector<actors::protocol::Completion> sample(const algorithms::PromptBatch& prompts);
  std::vector<actors::protocol::RewardResult> reward(
      const std::vector<actors::protocol::RewardRequest>& requests);

  const config::RunConfig& config_;
  model::Model model_;
  std::shared_ptr<run::TextModel> text_;
  engine::data::Dataset<engine::data::PromptRow> data_;
  algorithms::HeldOutPrompts settings_;
  std::optional<actors::rules::Rules> rules_;
  std::optional<actors::roles::RewardModels> reward_models_;
  engine::generate::TextDecoder decode_;
  engine::generate::Generator generator_;
};

}  // namespace troupe::launch::commands
