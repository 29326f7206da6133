// Proximal policy optimization with a critic (ppo.cpp).
#pragma once

#include "algorithms/advantages/controllers.h"
#include "algorithms/advantages/gae.h"
#include "algorithms/advantages/token_rewards.h"
#include "algorithms/advantages/whiten.h"
#include "algorithms/losses/ppo_loss.h"
#include "algorithms/losses/value_loss.h"
#include "algorithms/plan.h"
#include "algorithms/rollout/samples.h"

namespace troupe::algorithms {

/// What a sample that was cut at max_new_tokens would still have earned: nothing (TRL, verl,
/// OpenRLHF, MindSpeed), or what the critic says of the state it was cut in (AReaL).
enum class Bootstrap { zero, value };
constexpr std::array<std::string_view, 2> names_of(Bootstrap) {
  return {"zero", "value"};
}

/// Where the distance to the reference is paid for: token by token in the reward, or in the
/// policy's loss.
enum class KlPlace { reward, loss };
constexpr std::array<std::string_view, 2> names_of(KlPlace) {
  return {"reward", "loss"};
}

/// Defaults are TRL's.
struct PpoConfig : DrawConfig {
  int epochs = 4;  ///< passes over each round of samples
  int minibatches =
      1;  ///< optimizer steps a pass; the loader hands out minibatches * train.batch_size prompts
  GaeOptions gae;
  Bootstrap truncated = Bootstrap::zero;
  bool whiten_advantages = true, whiten_rewards = false;  ///< rewards keep their mean
  Variance variance = Variance::bessel;

  ScoreShape score;
  ScorePlace place = ScorePlace::last;
  Credit credit = Credit::sum;  ///< of process rewards
  double credit_temperature = 0.1;
  double step_baseline = 0;  ///< taken from every process reward: what a step of no merit would get

  double kl_coef = 0.05;  ///< 0: no reference is asked. A run that goes on under an adaptive
                          ///< controller begins with the last one's
  KlPlace kl_place = KlPlace::reward;
  KlEstimator kl = KlEstimator::k1;
  KlClamp kl_clamp = KlClamp::none;
  KlControl control;

  PpoLoss policy;  ///< its KL term is set from the fields above
  ValueLoss value;
  int critic_warmup = 0;  ///< rounds in which the critic alone is trained
};

/// How fast the critic learns; it takes as many steps as the run has.
struct CriticPlan {
  double learning_rate = 0;
  engine::optim::Schedule schedule;
};

/// Needs c.rollouts, c.critic, and c.verifier or c.reward or both; c.reference when config.kl_coef
/// is not 0.
Task<void> ppo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, Plan plan,
               CriticPlan critic, PpoConfig config);

}  // namespace troupe::algorithms
