// Contrastive preference optimization (Xu et al. 2024, arXiv:2401.08417): pairs without a reference
// (preference.h).
#pragma once

#include "algorithms/losses/cpo_loss.h"
#include "algorithms/preference.h"

namespace troupe::algorithms {

Task<void> cpo(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
               CpoLoss loss, HeldOut held_out = {});

}  // namespace troupe::algorithms
