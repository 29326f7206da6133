// SimPO (Meng et al. 2024, arXiv:2405.14734): pairs without a reference (preference.h).
#pragma once

#include "algorithms/losses/simpo_loss.h"
#include "algorithms/preference.h"

namespace troupe::algorithms {

Task<void> simpo(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
                 SimpoLoss loss, HeldOut held_out = {});

}  // namespace troupe::algorithms
