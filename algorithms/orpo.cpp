#include "algorithms/orpo.h"

namespace troupe::algorithms {

Task<void> orpo(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
                OrpoConfig config, HeldOut held_out) {
  PairTraining training{.loss = spec_of(config.loss),
                        .held_out_loss = spec_of(config.loss),
                        .nll_on_prompt = config.nll_on_prompt};
  return train_on_pairs(c, data, std::move(plan), std::move(training), std::move(held_out));
}

}  // namespace troupe::algorithms
