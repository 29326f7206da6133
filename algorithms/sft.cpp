// Supervised fine-tuning: the mean negative log-likelihood of the tokens that the data's masks name.
#include "algorithms/sft.h"

namespace troupe::algorithms {

Task<void> sft(Cluster& c, engine::data::Loader<engine::data::SftExample>& data, Plan plan, SftLoss loss) {
  for (std::int64_t step = plan.done + 1; step <= plan.steps; ++step) {
    const auto rows = data.next();
    if (!rows) break;
    protocol::TrainStep message{engine::data::to_experience(*rows), spec_of(loss), plan.rate(step)};
    auto training = c.policy.ask(std::move(message), c.patience);
    const auto stats = co_await training.get();
    c.journal.record(step, metrics_of(stats));

    const Json place = data.state();
    auto ending = end_step(c, plan, step - 1, step, place);
    const bool more = co_await ending;
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
