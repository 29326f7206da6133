// Group Relative Policy Optimization (Shao et al. 2024, arXiv:2402.03300): sample a group of answers to each prompt, judge them, prefer
// those above their group's mean. One step is one optimizer update; epochs * minibatches updates share one batch of samples.
#include "algorithms/grpo.h"

#include <algorithm>

#include "algorithms/grpo_batch.h"
#include "algorithms/refresh.h"
#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

using Prompts = engine::data::Batch<engine::data::PromptRow>;

// consumes: prompts · asks: every rollout at once, then verifier and reference for each part of the samples as it comes, while the
// rollouts draw the next · produces: judged samples in the order of the prompts
Task<Sampled> sample_and_judge(Cluster& c, const Prompts& prompts, const GrpoConfig& config) {
  auto parts = split_draws(draws_for(prompts, config.group), c.rollouts.size() * c.pieces);
  std::vector<actors::Reply<std::vector<protocol::Drawn>>> drawing;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    protocol::Generate message{std::move(parts[i]), config.sampling};
    drawing.push_back(c.rollouts[i % c.rollouts.size()].ask(std::move(message), c.patience));
  }
  std::vector<protocol::Drawn> drawn;
  std::vector<actors::Reply<std::vector<protocol::Verdict>>> judging;
  std::vector<actors::Reply<std::vector<float>>> scoring;
  for (auto& reply : drawing) {
    auto part = co_await reply.get();
    protocol::Judge question{submissions_of(prompts, part, drawn.size(), config)};
    judging.push_back(c.verifier->ask(std::move(question), c.patience));
    if (config.loss.beta != 0) {
      protocol::Logprobs message{assemble(prompts, part, drawn.size(), config), config.sampling.temperature};
      scoring.push_back(c.reference->ask(std::move(message), c.patience));
    }
    std::move(part.begin(), part.end(), std::back_inserter(drawn));
  }
  Sampled sampled{assemble(prompts, drawn, 0, config), std::move(drawn), {}, {}};
  for (auto& reply : scoring) {
    const auto logp = co_await reply.get();
    sampled.batch.reference_logp.insert(sampled.batch.reference_logp.end(), logp.begin(), logp.end());
  }
  std::vector<protocol::Verdict> verdicts;
  for (auto& reply : judging) {
    auto part = co_await reply.get();
    std::move(part.begin(), part.end(), std::back_inserter(verdicts));
  }
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
    auto sampling = sample_and_judge(c, *prompts, config);
    const auto sampled = co_await sampling;
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
