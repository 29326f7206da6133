// Group relative policy optimization (grpo.cpp).
#pragma once

#include <string>

#include "algorithms/advantages/controllers.h"
#include "algorithms/advantages/estimate.h"
#include "algorithms/advantages/token_rewards.h"
#include "algorithms/losses/grpo_loss.h"
#include "algorithms/method.h"
#include "algorithms/rollout/evaluation.h"
#include "algorithms/training/weight_sync.h"

namespace troupe::algorithms {

/// Selection of the groups of a batch (dynamic_sampling.h).
struct DynamicSampling {
  bool on = false;
  std::int64_t max_refills = 10;  ///< 0: no limit
  std::vector<double> bounds;     ///< of the mean reward of a group, exclusive; empty: none
  std::string metric;             ///< the label of a reward rule; empty: the reward

  double low() const { return bounds.empty() ? -unbounded : bounds.front(); }
  double high() const { return bounds.empty() ? unbounded : bounds.back(); }

  static void each_field(auto& self, auto&& field) {
    field("dynamic_sampling", self.on,
          "sample further prompts to replace groups with equal rewards (DAPO)");
    field("max_refills", self.max_refills, Range{0, 1e12},
          "dynamic sampling: maximum number of additional prompt batches per rollout; 0: no limit");
    field("dynamic_bounds", self.bounds,
          "dynamic sampling: keep groups whose mean reward lies strictly between these two numbers "
          "(OpenRLHF: 0 and 1); empty: all");
    field("dynamic_metric", self.metric,
          "dynamic sampling: label of the reward rule to test; empty: the total reward");
  }
};

struct GrpoConfig : RolloutOptions {
  static constexpr std::string_view name = "grpo";
  using Losses = LossList<GrpoLoss>;

  GrpoConfig() { group = 8; }
  int epochs = 1;  ///< passes over each batch of samples
  /// Optimizer steps per pass; the loader returns minibatches * train.batch_size prompts.
  int minibatches = 1;
  /// Aggregation::constant: the length that replaces each sample's own.
  double constant_length = 0;
  Counting counting;  ///< of sequences without a trained token
  Shaping shaping;
  AdvantageConfig advantage;
  DynamicSampling dynamic;
  EntropyControl entropy;  ///< of loss.entropy_coef
  GrpoLoss loss;           ///< of each update with its version, if it reads one, and GrpoState

  std::string reference;               ///< directory of the reference model
  bool normalize_each_reward = false;  ///< advantage.parts are then the reward rules

  static void each_field(auto& self, auto&& field) {
    field("group_size", self.group, Range{1, 4096}, "samples per prompt");
    AdvantageConfig::each_field(self.advantage, field);
    field("normalize_each_reward", self.normalize_each_reward,
          "scale each reward rule within its group before summing (GDPO)");
    field("reference", self.reference, reference_doc);
    GrpoLoss::each_field(self.loss, field);
    EntropyControl::each_field(self.entropy, field);
    field("constant_length", self.constant_length, at_least_0,
          "dr_grpo: constant length to divide by; 0: rollout.max_new_tokens");
    field("count_empty_sequences", self.counting.empty_sequences,
          "means over sequences include those without trained tokens (TRL), or not (verl, "
          "OpenRLHF)");
    Shaping::each_field(self.shaping, field);
    DynamicSampling::each_field(self.dynamic, field);
    field("epochs", self.epochs, Range{1, 1000}, "passes over each batch of samples");
    field("minibatches", self.minibatches, Range{1, 1 << 20},
          "optimizer steps per pass, each of train.batch_size prompts");
    RolloutOptions::each_field(self, field);
  }

  /// True when the reference scores the samples.
  bool compares() const { return loss.beta != 0 || advantage.reward_beta != 0; }
  double allowed_length() const { return static_cast<double>(sampling.max_new_tokens); }
};

/// Controller state, also in a checkpoint. Used where `entropy` is adaptive.
struct GrpoState {
  double entropy_coef = 0;
  double entropy_bonus = 0;  ///< coefficient of the next update's entropy bonus
  static void each_field(auto& self, auto&& field) {
    field("entropy_coef", self.entropy_coef);
    field("entropy_bonus", self.entropy_bonus);
  }
};
/// Needs c.rollouts and c.verifier; c.reference when config.compares(). Held-out prompts are
/// evaluated before the first step and at the ends of rollout steps. `saved`: the algorithm state
/// of a checkpoint; null: a new run.
Task<void> grpo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, TrainingPlan plan,
                GrpoConfig config, HeldOutPrompts held_out = HeldOutPrompts(), Json saved = Json());

}  // namespace troupe::algorithms
