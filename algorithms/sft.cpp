// Supervised fine-tuning: the mean negative log-likelihood of the tokens that the data's masks
// name.
#include "algorithms/sft.h"

namespace troupe::algorithms {
namespace {

// Loss and metrics of the held-out rows.
Task<Metrics> evaluate_rows(Cluster& c, const HeldOut& held_out, const SftLoss& loss) {
  c.journal.status("evaluating held-out rows");
  EvalMetrics eval(spec_of(loss));
  for (const auto& batch : held_out.batches) {
    protocol::Logprobs message{batch, 1.0};
    auto scoring = c.policy.ask(std::move(message), c.timeout);
    const auto logp = co_await scoring.get();
    eval.add(batch, logp);
  }
  co_return eval.metrics();
}

}  // namespace

Task<void> sft(Cluster& c, engine::data::Loader<engine::data::SftExample>& data, Plan plan,
               SftLoss loss, HeldOut held_out) {
  for (std::int64_t step = plan.done + 1; step <= plan.steps; ++step) {
    const auto rows = data.next();
    if (!rows) break;
    auto metrics =
        co_await update(c, plan, step, engine::data::to_experience(*rows), spec_of(loss));
    if (held_out.due(step, plan.steps)) {
      const auto eval = co_await evaluate_rows(c, held_out, loss);
      metrics.insert(metrics.end(), eval.begin(), eval.end());
    }
    auto ending = finish_step(c, plan, step, std::move(metrics), {}, data.state());
    const bool more = co_await ending;
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
