#include "algorithms/reward_model.h"

#include "algorithms/row_training.h"

namespace troupe::algorithms {

Task<void> orm(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, TrainingPlan plan,
               OrmLoss loss, HeldOut held_out) {
  return train_on_rows<engine::data::PairExample>(
      c, data, std::move(plan), loss, std::move(held_out), engine::data::to_scored_pairs);
}

Task<void> prm(Cluster& c, engine::data::Loader<engine::data::StepExample>& data, TrainingPlan plan,
               PrmLoss loss, HeldOut held_out) {
  return train_on_rows<engine::data::StepExample>(c, data, std::move(plan), loss,
                                                  std::move(held_out), engine::data::to_experience);
}

}  // namespace troupe::algorithms
