// Group Relative Policy Optimization (Shao et al. 2024, arXiv:2402.03300): sample a group of answers to each prompt, judge them, prefer
// those above their group's mean. One step is one optimizer update; epochs * minibatches updates share one batch of samples.
#include "algorithms/grpo.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/grpo_batch.h"
#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

using Prompts = engine::data::Batch<engine::data::PromptRow>;

// consumes: prompts · asks: every rollout at once · produces: group samples a prompt, in the order of the prompts
Task<std::vector<protocol::Drawn>> sample(Cluster& c, const Prompts& prompts, const GrpoConfig& config) {
  auto parts = split_draws(draws_for(prompts, config.group), c.rollouts.size());
  std::vector<actors::Reply<std::vector<protocol::Drawn>>> replies;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    protocol::Generate message{std::move(parts[i]), config.sampling};
    replies.push_back(c.rollouts[i].ask(std::move(message), c.patience));
  }
  std::vector<protocol::Drawn> drawn;
  for (auto& reply : replies) {
    auto part = co_await reply.get();
    std::move(part.begin(), part.end(), std::back_inserter(drawn));
  }
  co_return drawn;
}

Task<void> refresh_rollouts(Cluster& c) {
  protocol::Publish publish;
  auto publishing = c.policy.ask(std::move(publish), c.patience);
  const auto weights = co_await publishing.get();
  std::vector<actors::Reply<void>> loading;
  for (auto& rollout : c.rollouts) {
    protocol::LoadWeights message{weights};
    loading.push_back(rollout.ask(std::move(message), c.patience));
  }
  for (auto& reply : loading) co_await reply.get();
}

// Reference and verifier work at the same time.
Task<Sampled> judge(Cluster& c, const Prompts& prompts, std::vector<protocol::Drawn> drawn, const GrpoConfig& config) {
  Sampled sampled = assemble(prompts, std::move(drawn), config);
  protocol::Judge question{submissions_of(prompts, sampled)};
  auto judging = c.verifier->ask(std::move(question), c.patience);
  if (config.loss.beta != 0) {
    protocol::Logprobs message{sampled.batch, config.sampling.temperature};
    auto scoring = c.reference->ask(std::move(message), c.patience);
    sampled.batch.reference_logp = co_await scoring.get();
  }
  auto verdicts = co_await judging.get();
  settle(sampled, std::move(verdicts), config);
  co_return sampled;
}

}  // namespace

Task<void> grpo(Cluster& c, engine::data::Loader<engine::data::PromptRow>& data, Plan plan, GrpoConfig config) {
  for (std::int64_t step = plan.done; step < plan.steps;) {
    const auto prompts = data.next();
    if (!prompts) break;
    auto refreshing = refresh_rollouts(c);
    co_await refreshing;
    c.journal.status(cat("step ", step + 1, ": drawing ", prompts->ids.size() * static_cast<std::size_t>(config.group), " samples"));
    auto sampling = sample(c, *prompts, config);
    auto drawn = co_await sampling;
    auto judging = judge(c, *prompts, std::move(drawn), config);
    const auto sampled = co_await judging;
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
