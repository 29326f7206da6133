// Process reward models (prm.cpp).
#pragma once

#include "algorithms/losses/prm_loss.h"
#include "algorithms/scored.h"

namespace troupe::algorithms {

/// c.policy is the reward model: one with a score head of as many labels as there are classes, or,
/// for placeholders, a language model. Held-out batches judge every step.
Task<void> prm(Cluster& c, engine::data::Loader<engine::data::StepExample>& data, Plan plan,
               PrmLoss loss, HeldOut held_out = {});

}  // namespace troupe::algorithms
