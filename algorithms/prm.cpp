// Process reward models: every step of a solution is judged where it ends.
#include "algorithms/prm.h"

namespace troupe::algorithms {

Task<void> prm(Cluster& c, engine::data::Loader<engine::data::StepExample>& data, Plan plan,
               PrmLoss loss, HeldOut held_out) {
  return train_on_scores<engine::data::StepExample>(
      c, data, std::move(plan), loss, std::move(held_out), engine::data::to_experience);
}

}  // namespace troupe::algorithms
