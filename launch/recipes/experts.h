// Mixtures of experts, for every algorithm: the checks and the meaning of train.experts.*.
#pragma once

#include <string>

#include "engine/train/expert_training.h"
#include "launch/recipes/validate.h"

namespace troupe::launch::recipes {

/// The keys train.experts.*, for the run's method.
engine::train::ExpertOptions expert_settings(const config::RunConfig& config);

/// "load-balancing losses: all_layers (0.01), ..." of a run that trains a mixture of experts, for
/// its log; "" of another run.
std::string expert_losses_text(const config::RunConfig& config);

void validate_experts(Validation& v);

}  // namespace troupe::launch::recipes
