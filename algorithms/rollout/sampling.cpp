#include "algorithms/rollout/sampling.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "actors/roles/reward_scoring.h"
#include "actors/runtime/when_all.h"
#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

// A consecutive range of the samples, from requests to rewards. Its content does not depend on
// which rollout generated it, or when.
struct Chunk {
  std::size_t first = 0;  ///< index of its first sample
  std::vector<protocol::SampleRequest> requests;
  std::vector<std::uint64_t> sample_ids;  ///< of the requests
  std::vector<protocol::Completion> completions;
  engine::data::Experience batch;
  std::optional<actors::Reply<std::vector<protocol::RewardResult>>> rule_rewards, model_rewards;
  std::optional<actors::Reply<std::vector<float>>> reference_logp;
};

struct RolloutStep {
  const PromptBatch& prompts;
  const RolloutOptions& options;
  bool with_reference;
  std::vector<Chunk> chunks;
  std::size_t next = 0;  ///< first chunk that has not been requested
};

RolloutStep plan_step(const PromptBatch& prompts, const RolloutOptions& options,
                      bool with_reference, std::size_t chunks) {
  RolloutStep step{prompts, options, with_reference, {}, 0};
  std::size_t first = 0;
  for (auto& requests : split_requests(sample_requests(prompts, options), chunks)) {
    const std::size_t count = requests.size();
    Chunk chunk;
    chunk.first = first;
    for (const auto& request : requests) chunk.sample_ids.push_back(request.sample_id);
    chunk.requests = std::move(requests);
    step.chunks.push_back(std::move(chunk));
    first += count;
  }
  return step;
}

// Sends a finished chunk to verifier, reward models and reference; their replies are awaited
// later.
void request_rewards(Cluster& c, const RolloutStep& step, Chunk& chunk) {
  check(c.verifier || c.reward, "sampling: a verifier or a reward model is needed");
  const auto message = [&] {
    return protocol::ComputeRewards{
        reward_requests(step.prompts, chunk.completions, chunk.first, step.options)};
  };
  if (c.verifier) chunk.rule_rewards = c.verifier->ask(message(), c.timeout);
  if (c.reward) chunk.model_rewards = c.reward->ask(message(), c.timeout);
  chunk.batch = pack_samples(step.prompts, chunk.completions, chunk.first, step.options);
  const SequenceSizes sizes = sizes_of(chunk.batch);
  c.journal.passed({PassModel::policy, false, sizes});
  if (c.reward) c.journal.passed({PassModel::reward, false, sizes});
  if (!step.with_reference) return;
  c.journal.passed({PassModel::reference, false, sizes});
  protocol::Logprobs logprobs{chunk.batch, step.options.sampling.temperature};
  chunk.reference_logp = c.reference->ask(std::move(logprobs), c.timeout);
}

// Results of rules and models, added up.
Task<std::vector<protocol::RewardResult>> rewards_of(Chunk& chunk) {
  std::vector<protocol::RewardResult> rules;
  if (chunk.rule_rewards) rules = co_await chunk.rule_rewards->get();
  if (!chunk.model_rewards) co_return rules;
  auto models = co_await chunk.model_rewards->get();
  if (!chunk.rule_rewards) co_return models;
  check(models.size() == rules.size(),
        "sampling: verifier and reward models returned different numbers of rewards");
  for (std::size_t n = 0; n < models.size(); ++n) actors::roles::add(models[n], rules[n]);
  co_return rules;
}

// Keeps one rollout supplied: the next chunk waits in its mailbox. A faster rollout generates more
// of the chunks.
Task<void> rollout_worker(Cluster& c, const RolloutRef& rollout, RolloutStep& step) {
  std::deque<std::pair<Chunk*, actors::Reply<std::vector<protocol::Completion>>>> requested;
  const std::size_t in_flight = std::min<std::size_t>(2, c.chunks_per_rollout);
  for (;;) {
    while (requested.size() < in_flight && step.next < step.chunks.size()) {
      Chunk& chunk = step.chunks[step.next++];
      protocol::Generate message{std::move(chunk.requests), step.options.sampling};
      requested.emplace_back(&chunk, rollout.ask(std::move(message), c.timeout));
    }
    if (requested.empty()) co_return;
    auto [chunk, reply] = std::move(requested.front());
    requested.pop_front();
    chunk->completions = co_await reply.get();
    if (auto valid = check_answers(chunk->sample_ids, chunk->completions); !valid)
      throw Failure(
          {valid.error().code, cat(to_string(rollout.address()), ": ", valid.error().what)});
    request_rewards(c, step, *chunk);
  }
}

// Appends a chunk, waiting for its replies.
Task<void> collect(Chunk& chunk, RolloutBatch& samples) {
  if (chunk.reference_logp) chunk.batch.reference_logp = co_await chunk.reference_logp->get();
  samples.batch.append(chunk.batch);
  std::ranges::move(chunk.completions, std::back_inserter(samples.completions));
  auto rewards = co_await rewards_of(chunk);
  std::ranges::move(rewards, std::back_inserter(samples.rewards));
}

}  // namespace

Task<RolloutBatch> sample_rollouts(Cluster& c, const PromptBatch& prompts,
                                   const RolloutOptions& options, bool with_reference) {
  RolloutStep step =
      plan_step(prompts, options, with_reference, c.rollouts.size() * c.chunks_per_rollout);
  std::vector<Task<void>> workers;
  for (const auto& rollout : c.rollouts) workers.push_back(rollout_worker(c, rollout, step));
  co_await actors::when_all(std::move(workers));
  RolloutBatch samples{.prompts = prompts};
  for (Chunk& chunk : step.chunks) {
    co_await collect(chunk, samples);
  }
  co_return samples;
}

Task<void> recompute_old_logp(Cluster& c, engine::data::Experience& batch, double temperature) {
  batch.rollout_logp = batch.old_logp;
  c.journal.passed({PassModel::policy, false, sizes_of(batch)});
  protocol::Logprobs message{batch, temperature};
  auto logprobs = c.policy.ask(std::move(message), c.timeout);
  batch.old_logp = co_await logprobs.get();
}

}  // namespace troupe::algorithms
