// Outcome reward models: of two answers the preferred one is to score higher.
#include "algorithms/orm.h"

namespace troupe::algorithms {

Task<void> orm(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan,
               OrmLoss loss, HeldOut held_out) {
  return train_on_scores<engine::data::PairExample>(
      c, data, std::move(plan), loss, std::move(held_out), engine::data::to_scored_pairs);
}

}  // namespace troupe::algorithms
