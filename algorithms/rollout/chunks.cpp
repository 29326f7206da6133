#include "algorithms/rollout/chunks.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "actors/roles/reward_scoring.h"
#include "actors/runtime/when_all.h"
#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

using Generated = actors::Reply<std::vector<protocol::Completion>>;

// "rollout-0/rollout", and "rollout-0#2/rollout" for the process that replaced it.
std::string holder_name(const RolloutRef& rollout) {
  const transports::Address& address = rollout.address();
  return address.incarnation < 2 ? to_string(address)
                                 : cat(address.node, "#", address.incarnation, "/", address.actor);
}

// Asks the rollout for the samples of a chunk that are not finished; nullopt where all are.
std::optional<Generated> request_samples(Cluster& c, const RolloutRef& rollout,
                                         const ChunkedRequest& step, Chunk& chunk) {
  std::vector<protocol::SampleRequest> open;
  for (auto& request : chunk.requests)
    if (!step.finished || !step.finished->find(step.batch, request.sample_id))
      open.push_back(c.recovery ? request : std::move(request));
  if (!c.recovery) chunk.requests.clear();
  if (open.empty()) return std::nullopt;
  if (c.recovery) c.recovery->lease(rollout.address().node, open);
  if (step.ledger) step.ledger->leased(step.batch, open, holder_name(rollout));
  protocol::Generate message{std::move(open), step.options.sampling};
  return rollout.ask(std::move(message), c.timeout);
}

// Puts the finished samples of a chunk between those that were generated.
void add_finished(const ChunkedRequest& step, Chunk& chunk) {
  if (!step.finished) return;
  auto generated = std::move(chunk.completions);
  chunk.completions.clear();
  auto next = generated.begin();
  for (const std::uint64_t id : chunk.sample_ids) {
    if (const auto* finished = step.finished->find(step.batch, id))
      chunk.completions.push_back(*finished);
    else if (next != generated.end())
      chunk.completions.push_back(std::move(*next++));
  }
  std::move(next, generated.end(), std::back_inserter(chunk.completions));
}

// Sends a finished chunk to verifier, reward models and reference; their replies are awaited
// later.
void request_rewards(Cluster& c, const ChunkedRequest& step, Chunk& chunk) {
  check(c.verifier || c.reward || step.options.external,
        "sampling: a verifier or a reward model is needed");
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
  if (!chunk.rule_rewards && !chunk.model_rewards) co_return sent_rewards(chunk.completions);
  if (chunk.rule_rewards) rules = co_await chunk.rule_rewards->get();
  if (!chunk.model_rewards) co_return rules;
  auto models = co_await chunk.model_rewards->get();
  if (!chunk.rule_rewards) co_return models;
  check(models.size() == rules.size(),
        "sampling: verifier and reward models returned different numbers of rewards");
  for (std::size_t n = 0; n < models.size(); ++n) actors::roles::add(models[n], rules[n]);
  co_return rules;
}

// Appends a chunk, waiting for its replies.
Task<void> collect(const ChunkedRequest& step, Chunk& chunk, RolloutBatch& samples) {
  if (chunk.reference_logp) chunk.batch.reference_logp = co_await chunk.reference_logp->get();
  samples.batch.append(chunk.batch);
  auto rewards = co_await rewards_of(chunk);
  if (step.ledger) step.ledger->rewarded(step.batch, chunk.sample_ids, rewards);
  std::ranges::move(chunk.completions, std::back_inserter(samples.completions));
  std::ranges::move(rewards, std::back_inserter(samples.rewards));
}

}  // namespace

ChunkedRequest::ChunkedRequest(PromptBatch rows, RolloutOptions given, bool compared,
                               std::size_t parts)
    : prompts(std::move(rows)), options(std::move(given)), with_reference(compared) {
  std::size_t first = 0;
  const auto unit = static_cast<std::size_t>(options.whole_groups ? options.group : 1);
  for (auto& requests : split_requests(sample_requests(prompts, options), parts, unit)) {
    const std::size_t count = requests.size();
    Chunk chunk;
    chunk.first = first;
    for (const auto& request : requests) chunk.sample_ids.push_back(request.sample_id);
    chunk.requests = std::move(requests);
    chunks.push_back(std::move(chunk));
    first += count;
  }
}

Chunk& ChunkedRequest::take() {
  if (returned.empty()) return chunks[next++];
  Chunk& first = *returned.front();
  returned.pop_front();
  return first;
}

namespace {

// Samples that arrive for the first time: those that are finished are in the ledger.
void record_samples(const ChunkedRequest& step,
                    const std::vector<protocol::Completion>& completions) {
  if (!step.ledger) return;
  std::vector<const protocol::Completion*> arrived;
  for (const auto& completion : completions)
    if (!step.finished || !step.finished->find(step.batch, completion.sample_id))
      arrived.push_back(&completion);
  step.ledger->sampled(step.batch, arrived);
}

// A chunk whose samples are complete, unless the request was stopped meanwhile.
void end_chunk(Cluster& c, ChunkedRequest& step, Chunk& chunk, actors::Changes* generated) {
  if (step.stopped) return;
  if (!step.options.external) record_samples(step, chunk.completions);
  if (step.finished) step.finished->add(step.batch, chunk.completions);
  request_rewards(c, step, chunk);
  if (++step.done == step.chunks.size() && generated) generated->notify();
}

// For other rollouts, in their order, before those that nobody has requested. Where no rollout is
// replaced the run ends, and chunks no longer have their requests.
void return_chunks(Cluster& c, ChunkedRequest& step, const std::vector<Chunk*>& chunks,
                   actors::Changes* changes) {
  if (!c.recovery || step.stopped) return;
  step.returned.insert(step.returned.begin(), chunks.begin(), chunks.end());
  if (changes) changes->notify();
}

void check_chunk(const RolloutRef& rollout, const Chunk& chunk) {
  if (auto valid = check_answers(chunk.sample_ids, chunk.completions); !valid)
    throw Failure(
        {valid.error().code, cat(to_string(rollout.address()), ": ", valid.error().what)});
}

// The samples of a chunk that other programs make. Nobody knows how long they take, so the rollout
// replies with what it has, and the run can end in between: what has arrived is in
// step.finished, and with it in the next checkpoint.
Task<void> await_samples(Cluster& c, const RolloutRef& rollout, ChunkedRequest& step,
                         Chunk& chunk) {
  auto requests = c.recovery ? chunk.requests : std::exchange(chunk.requests, {});
  if (step.ledger) step.ledger->leased(step.batch, requests, holder_name(rollout));
  if (c.recovery) c.recovery->lease(rollout.address().node, requests);
  while (!step.stopped) {
    std::erase_if(requests, [&](const auto& request) {
      return step.finished->find(step.batch, request.sample_id) != nullptr;
    });
    if (requests.empty()) break;
    if (c.stop.requested())
      throw Failure({Errc::cancelled, "the run ended while other programs made its samples"});
    protocol::Generate message{requests, step.options.sampling};
    auto reply = rollout.ask(std::move(message), c.timeout);
    const auto made = co_await reply.get();
    record_samples(step, made);
    step.finished->add(step.batch, made);
    if (c.recovery) c.recovery->arrived(rollout.address().node, made);
  }
}

Task<void> await_chunks(Cluster& c, const RolloutRef& rollout, ChunkedRequest& step,
                        actors::Changes* generated) {
  check(step.finished != nullptr, "sampling: samples of other programs are kept when they arrive");
  while (step.open()) {
    Chunk& chunk = step.take();
    auto awaiting = await_samples(c, rollout, step, chunk);
    try {
      co_await awaiting;
    } catch (const Failure&) {
      return_chunks(c, step, {&chunk}, generated);
      throw;
    }
    if (step.stopped) co_return;
    add_finished(step, chunk);
    check_chunk(rollout, chunk);
    end_chunk(c, step, chunk, generated);
  }
}

}  // namespace

Task<void> generate_chunks(Cluster& c, const RolloutRef& rollout, ChunkedRequest& step,
                           actors::Changes* generated) {
  if (step.options.external) {
    auto awaiting = await_chunks(c, rollout, step, generated);
    co_await awaiting;
    co_return;
  }
  std::deque<std::pair<Chunk*, std::optional<Generated>>> requested;
  const std::size_t in_flight = std::min<std::size_t>(2, c.chunks_per_rollout);
  for (;;) {
    while (requested.size() < in_flight && step.open()) {
      Chunk& chunk = step.take();
      requested.emplace_back(&chunk, request_samples(c, rollout, step, chunk));
    }
    if (requested.empty()) co_return;
    auto [chunk, reply] = std::move(requested.front());
    requested.pop_front();
    if (reply) {
      auto generation = co_await reply->try_get();
      if (!generation) {
        std::vector<Chunk*> open{chunk};
        for (const auto& each : requested) open.push_back(each.first);
        requested.clear();  // their asks
        return_chunks(c, step, open, generated);
        throw Failure(generation.error());
      }
      chunk->completions = std::move(*generation);
    }
    if (c.recovery) c.recovery->arrived(rollout.address().node, chunk->completions);
    add_finished(step, *chunk);
    check_chunk(rollout, *chunk);
    chunk->requests.clear();
    if (step.stopped && !requested.empty()) {  // the rollout has begun the next one
      protocol::CancelSamples message;
      const auto ending = rollout.ask(std::move(message), c.timeout);
    }
    end_chunk(c, step, *chunk, generated);
  }
}

Task<RolloutBatch> collect_chunks(ChunkedRequest& step) {
  RolloutBatch samples{.prompts = step.prompts};
  for (Chunk& chunk : step.chunks) {
    co_await collect(step, chunk, samples);
  }
  co_return samples;
}

}  // namespace troupe::algorithms
