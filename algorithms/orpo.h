// Odds ratio preference optimization (Hong et al. 2024, arXiv:2403.07691): pairs without a
// reference (preference.h).
#pragma once

#include "algorithms/losses/orpo_loss.h"
#include "algorithms/preference.h"

namespace troupe::algorithms {

struct OrpoConfig {
  OrpoLoss loss;
  bool nll_on_prompt =
      true;  ///< the likelihood is of prompt and answer, as TRL has it; false: of the answer
};

Task<void> orpo(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
                OrpoConfig config, HeldOut held_out = {});

}  // namespace troupe::algorithms
