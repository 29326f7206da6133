// Supervised fine-tuning: the mean negative log-likelihood of the tokens that the data's masks name.
#include "algorithms/sft.h"

namespace troupe::algorithms {

Task<void> sft(Cluster& c, engine::data::Loader<engine::data::SftExample>& data, Plan plan, SftLoss loss) {
  for (std::int64_t step = plan.done + 1; step <= plan.steps; ++step) {
    const auto rows = data.next();
    if (!rows) break;
    auto stepping = take_step(c, plan, step, engine::data::to_experience(*rows), spec_of(loss), data.state());
    const bool more = co_await stepping;
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
