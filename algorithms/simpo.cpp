#include "algorithms/simpo.h"

namespace troupe::algorithms {

Task<void> simpo(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
                 SimpoLoss loss, HeldOut held_out) {
  return train_on_pairs(c, data, std::move(plan),
                        {.loss = spec_of(loss), .held_out_loss = spec_of(loss)},
                        std::move(held_out));
}

}  // namespace troupe::algorithms
