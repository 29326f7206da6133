#include "algorithms/rollout/parity_sample.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

constexpr std::uint64_t targets = 4;

// Independent of the numbers that sample the tokens themselves.
std::uint64_t stream(std::string_view name, std::uint64_t sample_id) {
  return stream_of(cat("parity_sample ", name, " ", sample_id));
}

// Tokens of the vocabulary, ascending and distinct.
std::vector<std::int32_t> drawn_targets(const RolloutBatch& samples,
                                        const RolloutOptions& options) {
  const std::uint64_t from = stream("targets", samples.batch.sample_id.front());
  std::vector<std::int32_t> out;
  for (std::uint64_t i = 0; i < targets; ++i)
    out.push_back(static_cast<std::int32_t>(uniform_below(
        static_cast<std::uint64_t>(options.vocabulary), options.sampling.seed, from, i)));
  std::ranges::sort(out);
  const auto equal = std::ranges::unique(out);
  out.erase(equal.begin(), equal.end());
  return out;
}

// The tokens before each place that is drawn.
std::vector<std::vector<std::int32_t>> drawn_places(const engine::data::Experience& batch,
                                                    const RolloutOptions& options) {
  std::vector<std::vector<std::int32_t>> out;
  for (std::size_t n = 0; n + 1 < batch.offsets.size(); ++n) {
    const std::int64_t begin = batch.offsets[n], end = batch.offsets[n + 1];
    const std::uint64_t from = stream("places", batch.sample_id[n]);
    for (std::int64_t t = begin + 1; t < end; ++t) {
      if (batch.mask[static_cast<std::size_t>(t)] == 0) continue;
      const auto place = static_cast<std::uint64_t>(t - begin);
      if (uniform(options.sampling.seed, from, place) < options.parity_sample)
        out.emplace_back(batch.tokens.begin() + begin, batch.tokens.begin() + t);
    }
  }
  return out;
}

// Requests whose only token is `target`. Every rollout gets a part of the places.
std::vector<actors::Reply<std::vector<protocol::Completion>>> generate_target(
    Cluster& c, const std::vector<std::vector<std::int32_t>>& places, std::int32_t target,
    const RolloutOptions& options) {
  engine::generate::SamplingParams sampling{.temperature = options.sampling.temperature,
                                            .max_new_tokens = 1};
  sampling.token_rules.forced_last = {target};
  std::vector<protocol::SampleRequest> requests(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    requests[i].prompt = places[i];
    requests[i].sample_id = i;
  }
  std::vector<actors::Reply<std::vector<protocol::Completion>>> out;
  auto parts = split_requests(std::move(requests), c.rollouts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    out.push_back(c.rollouts[i].ask(protocol::Generate{std::move(parts[i]), sampling}, c.timeout));
  return out;
}

// Each place followed by each target; the mask selects the targets.
engine::data::Experience with_targets(const std::vector<std::vector<std::int32_t>>& places,
                                      const std::vector<std::int32_t>& ids) {
  engine::data::Experience batch;
  for (const std::int32_t id : ids)
    for (const auto& place : places) {
      std::vector<std::int32_t> tokens = place;
      tokens.push_back(id);
      std::vector<float> mask(tokens.size(), 0.0f);
      mask.back() = 1;
      batch.append(tokens, mask);
    }
  return batch;
}

}  // namespace

Task<void> add_vocabulary_difference(Cluster& c, RolloutBatch& samples,
                                     const RolloutOptions& options) {
  check(options.vocabulary > 0, "vocabulary_difference: the size of the vocabulary is missing");
  const auto places = drawn_places(samples.batch, options);
  if (places.empty()) co_return;
  const auto ids = drawn_targets(samples, options);
  std::vector<actors::Reply<std::vector<protocol::Completion>>> generated;
  for (const std::int32_t id : ids)
    std::ranges::move(generate_target(c, places, id, options), std::back_inserter(generated));
  protocol::Logprobs message{with_targets(places, ids), options.sampling.temperature};
  const engine::data::Experience batch = message.batch;
  c.journal.passed({PassModel::policy, false, sizes_of(batch)});
  auto logprobs = c.policy.ask(std::move(message), c.timeout);
  const std::vector<float> scored = co_await logprobs.get();
  double sum = 0, most = 0;
  std::size_t n = 0;
  for (auto& reply : generated) {
    const std::vector<protocol::Completion> completions = co_await reply.get();
    for (const auto& completion : completions) {
      const auto last = static_cast<std::size_t>(batch.offsets[++n] - 1);
      check(completion.ids.size() == 1 && completion.ids.front() == batch.tokens[last],
            "vocabulary_difference: a rollout answered another token than the one it was asked");
      const double difference = std::abs(static_cast<double>(completion.logp.front()) -
                                         static_cast<double>(scored[last]));
      sum += difference;
      most = std::max(most, difference);
    }
  }
  samples.metrics.emplace_back("sampling/vocabulary_difference/mean", sum / static_cast<double>(n));
  samples.metrics.emplace_back("sampling/vocabulary_difference/max", most);
}

}  // namespace troupe::algorithms
