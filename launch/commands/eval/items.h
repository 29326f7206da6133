// EvalItems: the items of an evaluation, as the JSON lines of its output file.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/roles/reward_models.h"
#include "actors/roles/rules/rules.h"
#include "algorithms/rollout/evaluation.h"
#include "engine/data/loader/dataset.h"
#include "engine/serving/engine.h"
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
  /// Evaluates the items from `first` on, and passes their lines to `write` in their order: {"id",
  /// "prompt", "answer", "completions", "rewards", "parts", "finish_reasons", "tokens"}, and
  /// "failures" where a reward failed. They depend on no other item. Throws Failure. May be called
  /// once.
  void evaluate(std::size_t first, const std::function<void(std::vector<Json>)>& write);

 private:
  void start(std::size_t item);
  void step();
  std::vector<actors::protocol::Completion> take_complete(std::size_t least);
  std::vector<Json> lines_of(std::size_t first,
                             const std::vector<actors::protocol::Completion>& completions);
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
  std::unique_ptr<engine::serving::Engine> engine_;
  std::vector<Result<engine::generate::Generation>> ended_;  // in the step in progress
  /// Of the items that are not written, in their order; absent until they have ended.
  std::deque<std::optional<actors::protocol::Completion>> samples_;
  std::uint64_t started_ = 0, written_ = 0;  // numbers of samples
};

}  // namespace troupe::launch::commands
