#include "tests/simulator/actors.h"

#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"

namespace troupe::simulator {

using engine::generate::PartialSamples;

std::string Store::save(std::int64_t step, const std::vector<algorithms::SharedWeights>& weights,
                        const std::vector<algorithms::FinishedSample>& samples) {
  if (!ledger_.live()) return "kept";
  ledger_.keep(samples);
  versions_[step] = weights;
  samples_[step] = samples;
  return "kept";
}

algorithms::SharedWeights Store::load(std::int64_t step, std::uint64_t version) {
  for (const auto& weights : versions_.at(step))
    if (weights->version == version) return weights;
  throw Failure({Errc::not_found, cat("version ", version, " was not saved with step ", step)});
}

std::vector<algorithms::FinishedSample> Store::load_samples(std::int64_t step) {
  ledger_.restore(samples_[step]);
  return samples_[step];
}

void Store::save(std::int64_t step, Checkpoint checkpoint) {
  if (ledger_.live()) checkpoints_[step] = std::move(checkpoint);
}

std::uint64_t Pace::below(std::uint64_t n) {
  return uniform_below(n, seed_, 1, draws_++);
}

Task<void> Pace::pause(Milliseconds most) {
  const auto time = below(static_cast<std::uint64_t>(most.count()));
  if (time == 0) co_return;
  auto pause = node_->after(Milliseconds(time));
  co_await pause.get();
}

Task<protocol::StepStats> SimulatedPolicy::on(protocol::TrainStep m) {
  co_await pace.pause(Milliseconds(200));
  ledger->train(m.batch);
  double sum = 0;
  for (std::size_t n = 0; n < m.batch.sample_id.size(); ++n)
    sum += static_cast<double>(m.batch.sample_id[n] % 97) / static_cast<double>(n + 1);
  weight = weight * 0.75 + sum * m.learning_rate;
  ++updates;
  co_return protocol::StepStats{
      weight, 1, m.learning_rate, static_cast<double>(m.batch.token_count()), updates, {}};
}

Task<std::vector<float>> SimulatedPolicy::on(protocol::Logprobs m) {
  co_return std::vector<float>(m.batch.tokens.size(), static_cast<float>(weight));
}

Task<std::vector<float>> SimulatedPolicy::on(protocol::Score m) {
  co_return std::vector<float>(m.batch.tokens.size(), 0.0f);
}

Task<protocol::Weights> SimulatedPolicy::on(protocol::Publish m) {
  const auto value = static_cast<float>(weight);
  protocol::Weights weights{
      m.version, updates, std::make_shared<const std::vector<float>>(1, value), {}, {{}, {value}}};
  ledger->publish(weights);
  co_await pace.pause(Milliseconds(20));
  co_return weights;
}

Task<std::string> SimulatedPolicy::on(protocol::Save m) {
  co_await pace.pause(Milliseconds(50));
  check(!writing, "a checkpoint is begun before the one before it is durable");
  ledger->save(m.step, m.state);
  writing.emplace(m.step, Store::Checkpoint{updates, weight, std::move(m.state)});
  if (m.overlapped) co_return "";
  auto finishing = on(protocol::FinishSave{.wait = true});
  co_return co_await finishing;
}

Task<std::string> SimulatedPolicy::on(protocol::FinishSave m) {
  if (!writing || (!m.wait && pace.below(3) != 0)) co_return "";
  co_await pace.pause(Milliseconds(50));
  auto [step, checkpoint] = *std::exchange(writing, std::nullopt);
  store->save(step, std::move(checkpoint));
  co_await pace.pause(Milliseconds(50));
  co_return cat("checkpoint-", step);
}

Task<std::vector<protocol::Completion>> SimulatedRollout::on(protocol::Generate m) {
  std::vector<protocol::Completion> all;
  for (const auto& request : m.requests) {
    auto sampling = sample(request.sample_id);
    all.push_back(co_await sampling);
  }
  co_return all;
}

Task<protocol::Completion> SimulatedRollout::sample(std::uint64_t sample_id) {
  ledger->start(sample_id, weights.version);
  protocol::Completion c{.sample_id = sample_id};
  const std::uint64_t length = 1 + uniform_below(3, 23, sample_id, 0);
  std::uint64_t before = weights.version;
  while (c.ids.size() < length && cancelled == 0) {
    co_await pace.pause(Milliseconds(40));
    if (weights.version != before && !c.ids.empty()) interrupt(c);
    before = weights.version;
    append(c);
  }
  c.text = cat(sample_id);
  c.finish_reason = protocol::FinishReason::stop;
  co_return c;
}

void SimulatedRollout::interrupt(protocol::Completion& c) const {
  ++c.interruptions;
  if (partial == PartialSamples::proceed || c.restarts > 0) return;
  ++c.restarts;
  c.ids.clear();
  c.logp.clear();
  c.versions.clear();
}

void SimulatedRollout::append(protocol::Completion& c) const {
  c.ids.push_back(static_cast<std::int32_t>((c.sample_id + c.ids.size()) % 31));
  c.logp.push_back(-weights.values->front());
  if (c.versions.empty() || c.versions.back().version != weights.version)
    c.versions.push_back({weights.version, 0});
  ++c.versions.back().count;
}

Task<std::vector<float>> SimulatedRollout::on(protocol::PrepareWeights m) {
  co_await pace.pause(Milliseconds(20));
  prepared = std::move(m.weights);
  co_return prepared.probe.logp;
}

Task<void> SimulatedRollout::on(protocol::CommitWeights m) {
  if (m.version != prepared.version)
    throw Failure({Errc::bad_input, cat("version ", m.version, " was not prepared")});
  ledger->take_over(weights.version, prepared);
  weights = prepared;
  co_return;
}

Task<std::uint64_t> SimulatedRollout::on(protocol::CancelSamples) {
  co_return ++cancelled;
}

Task<std::vector<protocol::RewardResult>> SimulatedVerifier::on(protocol::ComputeRewards m) {
  std::vector<protocol::RewardResult> results;
  for (const auto& request : m.requests) {
    co_await pace.pause(Milliseconds(10));
    const std::uint64_t id = std::stoull(request.completion);
    ledger->reward(id);
    results.push_back({reward_of(id), {}, ""});
  }
  co_return results;
}

}  // namespace troupe::simulator
