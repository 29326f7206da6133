// Outcome reward models (orm.cpp).
#pragma once

#include "algorithms/losses/orm_loss.h"
#include "algorithms/scored.h"

namespace troupe::algorithms {

/// c.policy is the reward model: a model with a score head of one label. Held-out batches are
/// data::to_scored_pairs.
Task<void> orm(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
               OrmLoss loss, HeldOut held_out = {});

}  // namespace troupe::algorithms
