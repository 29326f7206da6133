// Group Relative Policy Optimization (Shao et al. 2024, arXiv:2402.03300): sample a group of answers to each prompt, judge them, prefer
// those above their group's mean. One step is one optimizer update; epochs * minibatches updates share one batch of samples.
#include "algorithms/grpo.h"

#include "algorithms/grpo_batch.h"
#include "algorithms/refresh.h"
#include "algorithms/round.h"
#include "engine/base/text.h"

namespace troupe::algorithms {

Task<void> grpo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, Plan plan, GrpoConfig config) {
  for (std::int64_t step = plan.done; step < plan.steps;) {
    const auto prompts = data.next();
    if (!prompts) break;
    auto refreshing = refresh_rollouts(c);
    co_await refreshing;
    c.journal.status(cat("step ", step + 1, ": drawing ", prompts->ids.size() * static_cast<std::size_t>(config.group), " samples"));
    auto sampling = sample_and_judge(c, *prompts, config, config.loss.beta != 0);
    auto sampled = co_await sampling;
    settle(sampled, std::move(sampled.verdicts), config);
    show(c.journal, step + 1, *prompts, sampled, config.shown);

    const std::int64_t before = step;
    auto updates = updates_of(sampled, config);
    for (auto& update : updates) {
      if (step == plan.steps) break;
      ++step;
      protocol::TrainStep message{std::move(update), spec_of(config.loss), plan.rate(step)};
      auto training = c.policy.ask(std::move(message), c.patience);
      const auto stats = co_await training.get();
      auto metrics = metrics_of(stats);
      metrics.insert(metrics.end(), sampled.metrics.begin(), sampled.metrics.end());
      c.journal.record(step, metrics);
    }
    const Json place = data.state();
    auto ending = end_step(c, plan, before, step, place);
    const bool more = co_await ending;
    if (!more) break;
  }
}

}  // namespace troupe::algorithms
