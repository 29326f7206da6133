// Process reward models: every step of a solution is judged where it ends.
#include "algorithms/prm.h"

namespace troupe::algorithms {

Task<void> prm(Cluster& c, engine::data::Loader<engine::data::StepExample>& data, Plan plan, PrmLoss loss) {
  for (std::int64_t step = plan.done + 1; step <= plan.steps; ++step) {
    const auto rows = data.next();
    if (!rows) break;
    auto stepping = take_step(c, plan, step, engine::data::to_experience(*rows), spec_of(loss), data.state());
    const bool more = co_await stepping;
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
