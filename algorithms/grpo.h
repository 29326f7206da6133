// Group relative policy optimization (grpo.cpp).
#pragma once

#include "algorithms/advantage.h"
#include "algorithms/losses/grpo_loss.h"
#include "algorithms/plan.h"
#include "algorithms/samples.h"

namespace troupe::algorithms {

struct GrpoConfig : DrawConfig {
  GrpoConfig() { group = 8; }
  int epochs = 1;              ///< passes over each batch of samples
  int minibatches = 1;         ///< optimizer steps a pass; the loader hands out minibatches * train.batch_size prompts
  double constant_length = 0;  ///< GrpoLoss::Aggregation::constant: the length that replaces each sample's own
  GroupScale scale = GroupScale::group;
  GrpoLoss loss;
};

/// Needs c.rollouts and c.verifier; c.reference when config.loss.beta is not 0.
Task<void> grpo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, Plan plan, GrpoConfig config);

}  // namespace troupe::algorithms
