// Direct preference optimization (Rafailov et al. 2023, arXiv:2305.18290) and its relatives: the
// loss alone differs (preference.h).
#pragma once

#include "algorithms/losses/dpo_loss.h"
#include "algorithms/preference.h"

namespace troupe::algorithms {

struct DpoConfig {
  DpoLoss loss;
  bool precompute_reference =
      false;  ///< score every pair once before the first step, then let the reference go
  Following following = {};  ///< of the reference (TR-DPO); not with precompute_reference
};

/// Needs c.reference; c.follower where the reference follows. Held-out pairs are not weighted:
/// WPO's weights are about training on data that the policy did not write.
Task<void> dpo(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
               DpoConfig config, HeldOut held_out = {});

}  // namespace troupe::algorithms
