#include "algorithms/dpo.h"

namespace troupe::algorithms {

Task<void> dpo(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
               DpoConfig config, HeldOut held_out) {
  DpoLoss unweighted = config.loss;
  unweighted.weighting = false;
  PairTraining training{.loss = spec_of(config.loss),
                        .held_out_loss = spec_of(unweighted),
                        .reference = true,
                        .precompute_reference = config.precompute_reference,
                        .following = config.following};
  return train_on_pairs(c, data, std::move(plan), std::move(training), std::move(held_out));
}

}  // namespace troupe::algorithms
