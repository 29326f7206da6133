// Proximal policy optimization with a critic (ppo.cpp).
#pragma once

#include "algorithms/advantages/controllers.h"
#include "algorithms/advantages/gae.h"
#include "algorithms/advantages/token_rewards.h"
#include "algorithms/advantages/whiten.h"
#include "algorithms/losses/ppo_loss.h"
#include "algorithms/losses/value_loss.h"
#include "algorithms/method.h"
#include "algorithms/rollout/evaluation.h"
#include "algorithms/training/weight_sync.h"

namespace troupe::algorithms {

/// Value after a sample truncated at max_new_tokens: 0 (TRL, verl, OpenRLHF, MindSpeed), or the
/// critic's value of its last state (AReaL).
enum class Bootstrap { zero, value };
constexpr std::array<std::string_view, 2> names_of(Bootstrap) {
  return {"zero", "value"};
}

/// Place of the KL penalty: the reward of each token, or the policy's loss.
enum class KlPlace { reward, loss };
constexpr std::array<std::string_view, 2> names_of(KlPlace) {
  return {"reward", "loss"};
}

/// Defaults are TRL's.
struct PpoConfig : RolloutOptions {
  static constexpr std::string_view name = "ppo";
  using Losses = LossList<PpoLoss, ValueLoss>;

  int epochs = 4;  ///< passes over each batch of samples
  /// Optimizer steps per pass; the loader returns minibatches * train.batch_size prompts.
  int minibatches = 1;
  GaeOptions gae;
  Bootstrap truncated = Bootstrap::zero;
  bool whiten_advantages = true, whiten_rewards = false;  ///< rewards keep their mean
  Variance variance = Variance::bessel;

  ScoreShape score;
  ScorePlace place = ScorePlace::last;
  Credit credit = Credit::sum;  ///< of process rewards
  double credit_temperature = 0.1;
  double step_baseline = 0;  ///< subtracted from every process reward

  double kl_coef = 0.05;  ///< 0: the reference is not used
  KlPlace kl_place = KlPlace::reward;
  KlEstimator kl = KlEstimator::k1;
  KlClamp kl_clamp = KlClamp::none;
  KlControl control;

  PpoLoss policy;  ///< its KL term is set from the fields above
  ValueLoss value;
  int critic_warmup = 0;  ///< rollout steps in which only the critic is trained
  std::string reference;  ///< directory of the reference model

  static void each_field(auto& self, auto&& field) {
    field("epochs", self.epochs, Range{1, 10000}, "passes over each batch of samples");
    field("minibatches", self.minibatches, Range{1, 10000},
          "optimizer steps per pass, each of train.batch_size prompts; reshuffled for every pass");
    field("samples", self.group, Range{1, 10000}, "samples per prompt");
    GaeOptions::each_field(self.gae, field);
    field("truncated", self.truncated,
          "value after a sample truncated at rollout.max_new_tokens: zero (TRL, verl, OpenRLHF), "
          "or the critic's estimate (AReaL)");
    RolloutOptions::each_field(self, field);
    field("whiten_advantages", self.whiten_advantages,
          "normalize advantages to mean 0 and standard deviation 1 over the batch");
    field("whiten_rewards", self.whiten_rewards,
          "divide token rewards by their standard deviation over the batch; the mean stays");
    field("variance", self.variance,
          "variance for whitening with n - 1 (TRL, verl, MindSpeed), or with n (OpenRLHF)");
    PpoLoss::each_setting(self.policy, field);
    field("kl_coef", self.kl_coef, at_least_0,
          "KL penalty coefficient; 0: no reference model is needed");
    field("kl_place", self.kl_place, "apply the KL penalty to the token rewards, or to the loss");
    field("kl", self.kl, kl_doc);
    field("kl_clamp", self.kl_clamp, kl_clamp_doc);
    KlControl::each_field(self.control, field);
    field("reference", self.reference, reference_doc);
    field("score_place", self.place,
          "position of a sample's score: its last token, or one step later, at the state after the "
          "end (TRL, MindSpeed-LLM)");
    ScoreShape::each_field(self.score, field);
    field("credit", self.credit,
          "process rewards: at the ends of their steps as they are (sum), or weighted so that only "
          "the worst step counts (min; PURE)");
    field("credit_temperature", self.credit_temperature, above_0,
          "credit min: softmax temperature");
    field("step_baseline", self.step_baseline,
          "subtracted from every process reward; 0.5 makes wrong steps negative where rewards are "
          "probabilities");
  }
};

/// Learning rate of the critic, which takes as many steps as the run has.
struct CriticPlan {
  double learning_rate = 0;
  engine::optim::Schedule schedule;
};

/// Controller state in a checkpoint.
struct PpoState {
  double kl_coef = 0;
  static void each_field(auto& self, auto&& field) { field("kl_coef", self.kl_coef); }
};
/// Continues an adaptive controller from the algorithm state of a checkpoint (null: a new run).
Result<> resume(PpoConfig& config, const Json& state);

/// Needs c.rollouts, c.critic, and c.verifier or c.reward or both; c.reference when config.kl_coef
/// is not 0. Held-out prompts are evaluated before the first step and at the ends of rollout steps.
Task<void> ppo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, TrainingPlan plan,
               CriticPlan critic, PpoConfig config, HeldOutPrompts held_out = HeldOutPrompts());

}  // namespace troupe::algorithms
