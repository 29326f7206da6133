// Outcome reward models: of two answers the preferred one is to score higher.
#include "algorithms/orm.h"

namespace troupe::algorithms {

Task<void> orm(Cluster& c, engine::data::Loader<engine::data::PairExample>& data, Plan plan, OrmLoss loss) {
  for (std::int64_t step = plan.done + 1; step <= plan.steps; ++step) {
    const auto pairs = data.next();
    if (!pairs) break;
    auto stepping = take_step(c, plan, step, engine::data::to_scored_pairs(*pairs), spec_of(loss), data.state());
    const bool more = co_await stepping;
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
