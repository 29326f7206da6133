// Direct preference optimization (dpo.cpp).
#pragma once

#include "algorithms/losses/dpo_loss.h"
#include "algorithms/plan.h"
#include "engine/data/loader.h"

namespace troupe::algorithms {

struct DpoConfig {
  DpoLoss loss;
  bool precompute_reference = false;  ///< score every pair once before the first step, then let the reference go
};

/// Needs c.reference.
Task<void> dpo(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan, DpoConfig config);

}  // namespace troupe::algorithms
