// Outcome reward models (orm.cpp).
#pragma once

#include "algorithms/losses/orm_loss.h"
#include "algorithms/plan.h"
#include "engine/data/loader.h"

namespace troupe::algorithms {

/// c.policy is the reward model: a model with a score head of one label.
Task<void> orm(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan, OrmLoss loss);

}  // namespace troupe::algorithms
