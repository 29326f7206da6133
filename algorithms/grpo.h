// Group relative policy optimization (grpo.cpp).
#pragma once

#include <limits>
#include <string>

#include "algorithms/advantages/controllers.h"
#include "algorithms/advantages/estimate.h"
#include "algorithms/advantages/token_rewards.h"
#include "algorithms/losses/grpo_loss.h"
#include "algorithms/plan.h"
#include "algorithms/rollout/samples.h"

namespace troupe::algorithms {

/// Which groups a round is made of (rollout/dynamic_sampling.h).
struct DynamicSampling {
  bool on = false;
  std::int64_t max_refills =
      10;  ///< batches of prompts drawn beside a round's first; 0: as many as it takes
  /// The mean reward of a group lies between, strictly (OpenRLHF's dynamic filtering: 0 and 1).
  double low = -std::numeric_limits<double>::infinity(),
         high = std::numeric_limits<double>::infinity();
  std::string metric;  ///< the reward part that is looked at; empty: the reward
};

struct GrpoConfig : DrawConfig {
  GrpoConfig() { group = 8; }
  int epochs = 1;  ///< passes over each batch of samples
  int minibatches =
      1;  ///< optimizer steps a pass; the loader hands out minibatches * train.batch_size prompts
  double constant_length =
      0;              ///< Aggregation::constant: the length that replaces each sample's own
  Counting counting;  ///< of sequences without a trained token
  Shaping shaping;
  AdvantageConfig advantage;
  DynamicSampling dynamic;
  /// Of loss.entropy_coef. A run that goes on under an adaptive controller begins with the last
  /// coefficient and bonus.
  EntropyControl entropy;
  double entropy_bonus = 0;  ///< adaptive: what the next update's bonus is multiplied by
  GrpoLoss loss;             ///< its version, where it reads one, is set step by step

  /// Samples are compared with the reference.
  bool compares() const { return loss.beta != 0 || advantage.reward_beta != 0; }
  double allowed_length() const { return static_cast<double>(sampling.max_new_tokens); }
};

/// Needs c.rollouts and c.verifier; c.reference when config.compares().
Task<void> grpo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, Plan plan,
                GrpoConfig config);

}  // namespace troupe::algorithms
