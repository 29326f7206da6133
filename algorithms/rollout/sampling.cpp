#include "algorithms/rollout/sampling.h"

#include "actors/runtime/when_all.h"
#include "algorithms/rollout/chunks.h"
#include "algorithms/rollout/reward_failures.h"
#include "algorithms/rollout/rollout_pool.h"
#include "algorithms/training/weight_sync.h"

namespace troupe::algorithms {

namespace {

Task<void> generate_on(Cluster& c, RolloutRef rollout, ChunkedRequest& request) {
  co_await take_weights(c, rollout);
  co_await generate_chunks(c, rollout, request, &c.recovery->changes());
}

// Until all samples are generated: those of a rollout that is lost are given to the others, and its
// successor takes part.
Task<void> generate_until_complete(Cluster& c, RolloutRef& rollout, ChunkedRequest& request) {
  try {
    while (!request.generated() && !request.stopped) {
      if (take_successor(c, rollout) && request.open())
        co_await survives(c, rollout, generate_on(c, rollout, request));
      else
        co_await c.recovery->changes().next();
    }
  } catch (...) {
    request.stop();
    c.recovery->notify();  // the others do not wait for its chunks
    throw;
  }
}

}  // namespace

Task<RolloutBatch> sample_rollouts(Sampling from, PromptBatch prompts, RolloutOptions options,
                                   bool with_reference) {
  Cluster& c = from.cluster;
  // Other programs get all samples of a rollout at once.
  const std::size_t parts = c.rollouts.size() * (options.external ? 1 : c.chunks_per_rollout);
  auto request = std::make_shared<ChunkedRequest>(std::move(prompts), std::move(options),
                                                  with_reference, parts);
  request->finished = from.finished;
  request->batch = from.batch;
  request->ledger = from.ledger;
  if (from.ledger)
    for (const Chunk& chunk : request->chunks) from.ledger->admitted(from.batch, chunk.requests);
  if (from.pool) {
    co_await from.pool->generate(from, request);
  } else {
    std::vector<Task<void>> workers;
    for (auto& rollout : c.rollouts)
      workers.push_back(c.recovery ? generate_until_complete(c, rollout, *request)
                                   : generate_chunks(c, rollout, *request, nullptr));
    co_await actors::when_all(std::move(workers));
  }
  auto samples = co_await collect_chunks(*request);
  check_reward_failures(samples.completions, samples.rewards, request->options.max_reward_failures);
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
