// Reward models: outcome and process models differ in their rows and in their loss.
#pragma once

#include "algorithms/losses/orm_loss.h"
#include "algorithms/losses/prm_loss.h"
#include "algorithms/method.h"

namespace troupe::algorithms {

// Outcome reward models: the preferred one of two answers gets the higher score.
constexpr const char* head_init_std_doc =
    "standard deviation of the initial weights of a new score head; 0: zeros";

struct OrmConfig {
  static constexpr std::string_view name = "orm";
  using Losses = LossList<OrmLoss>;

  OrmLoss loss;
  double head_init_std = 0.02;

  static void each_field(auto& self, auto&& field) {
    OrmLoss::each_field(self.loss, field);
    field("head_init_std", self.head_init_std, at_least_0, head_init_std_doc);
  }
};

/// Trains c.policy, a model with a score head of one label. Held-out batches are
/// data::to_scored_pairs.
Task<void> orm(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, TrainingPlan plan,
               OrmLoss loss, HeldOut held_out = HeldOut());

// Process reward models: a score for every step of a solution.
/// Position and head that classify a step: the score head at the last token of the step separator
/// (TRL), or the language model head at a placeholder token after the step (Math-Shepherd,
/// MindSpeed).
enum class PrmKind { token_class, placeholder };
constexpr std::array<std::string_view, 2> names_of(PrmKind) {
  return {"token_class", "placeholder"};
}

struct PrmConfig {
  static constexpr std::string_view name = "prm";
  using Losses = LossList<PrmLoss>;

  PrmKind kind = PrmKind::token_class;
  std::string step_separator = "\n";
  bool train_on_last_step_only = false;
  int classes = 2;
  double head_init_std = 0.02;
  std::string placeholder = "ки";
  std::vector<std::string> reward_tokens{"+", "-"};
  PrmLoss loss;  ///< its reward tokens are set from the tokenizer

  static void each_field(auto& self, auto&& field) {
    field("kind", self.kind,
          "token_class: a score head classifies the last token of each step's separator (TRL); "
          "placeholder: the language model head predicts a reward token at the placeholder behind "
          "each step (Math-Shepherd, MindSpeed)");
    field("step_separator", self.step_separator, "token_class: text appended to each step");
    field("train_on_last_step_only", self.train_on_last_step_only,
          "train on the last step of each row only");
    field("classes", self.classes, Range{2, 1024},
          "token_class: labels of the score head; 0 is wrong, 1 is right");
    field("head_init_std", self.head_init_std, at_least_0,
          "token_class: standard deviation of the initial weights of a new score head; 0: zeros");
    field("placeholder", self.placeholder,
          "placeholder: text at which a step is classified; exactly one token");
    field("reward_tokens", self.reward_tokens,
          "placeholder: the labels of a step, the right one first; each exactly one token");
    PrmLoss::each_field(self.loss, field);
  }
};

/// Trains c.policy, a model with a score head of one label per class or, for placeholders, a
/// language model. Held-out batches evaluate every step.
Task<void> prm(Cluster& c, engine::data::Loader<engine::data::StepExample>& data, TrainingPlan plan,
               PrmLoss loss, HeldOut held_out = HeldOut());

}  // namespace troupe::algorithms
