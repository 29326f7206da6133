// Group relative policy optimization (grpo.cpp).
#pragma once

#include "algorithms/advantage.h"
#include "algorithms/losses/grpo_loss.h"
#include "algorithms/plan.h"
#include "engine/data/loader.h"

namespace troupe::algorithms {

struct GrpoConfig {
  int group = 8;                ///< samples a prompt
  int epochs = 1;               ///< passes over each batch of samples
  int minibatches = 1;          ///< optimizer steps a pass; the loader hands out minibatches * train.batch_size prompts
  bool mask_truncated = false;  ///< samples cut at max_new_tokens are not trained on
  double constant_length = 0;   ///< GrpoLoss::Aggregation::constant: the length that replaces each sample's own
  GroupScale scale = GroupScale::group;
  engine::generate::SamplingParams sampling;
  GrpoLoss loss;
  int shown = 4;  ///< samples a step that the journal gets to see
};

/// Needs c.rollouts and c.verifier; c.reference when config.loss.beta is not 0.
Task<void> grpo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, Plan plan, GrpoConfig config);

}  // namespace troupe::algorithms
