// Actors that answer an algorithm with arithmetic instead of a network, and a journal that stores
// its records.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "actors/runtime/message.h"
#include "algorithms/training/cluster.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {

/// Combines all numbers of a batch that an error could change into one number.
inline double digest(const engine::data::Experience& b) {
  double sum = 0;
  for (std::size_t t = 0; t < b.tokens.size(); ++t) {
    double of_token = b.tokens[t] + 0.5 * static_cast<double>(b.mask[t]);
    for (const auto* column : {&b.old_logp, &b.reference_logp, &b.advantage, &b.value, &b.returns})
      if (!column->empty()) of_token += static_cast<double>((*column)[t]);
    sum += of_token / static_cast<double>(t + 1);
  }
  return sum;
}

/// A policy whose only weights are the number of updates and their digest.
struct FakePolicy {
  using Handled = actors::Messages<protocol::TrainStep, protocol::Logprobs, protocol::Score,
                                   protocol::Publish, protocol::Save, protocol::FinishSave>;
  std::vector<std::string>* saved;
  std::uint64_t version = 0;
  double weight = 1;

  protocol::StepStats on(protocol::TrainStep m) {
    weight = weight * 0.75 + digest(m.batch) * m.learning_rate;
    return {weight, 1, m.learning_rate, static_cast<double>(m.batch.token_count()), ++version, {}};
  }
  std::vector<float> on(protocol::Logprobs m) {
    return std::vector<float>(m.batch.tokens.size(), static_cast<float>(weight));
  }
  /// One number per token, or two for models with classes: the token's own, and 0.
  std::vector<float> on(protocol::Score m) {
    std::vector<float> scores;
    for (const auto token : m.batch.tokens) {
      scores.push_back(static_cast<float>(token));
      if (!m.batch.classes.empty()) scores.push_back(0);
    }
    return scores;
  }
  protocol::Weights on(protocol::Publish m) {
    return {m.version,
            version,
            std::make_shared<const std::vector<float>>(1, static_cast<float>(weight)),
            {},
            {{}, {static_cast<float>(weight)}}};
  }
  std::string on(protocol::Save m) {
    Json state = m.state.data;
    if (!m.state.algorithm.is_null()) state.set("algorithm", m.state.algorithm);
    saved->push_back(cat(m.step, ' ', state.dump(),
                         m.state.best_step > 0 ? cat(" best_step=", m.state.best_step) : ""));
    const std::string path = cat("checkpoint-", m.step);
    if (!m.overlapped) return path;
    writing = path;
    return "";
  }
  /// A checkpoint takes one step.
  std::string on(protocol::FinishSave m) {
    if (!std::exchange(asked, !writing.empty()) && !m.wait) return "";
    asked = false;
    return std::exchange(writing, "");
  }
  std::string writing;  ///< a checkpoint
  bool asked = false;   ///< whether it is durable
};

struct FakeReference {
  using Handled = actors::Messages<protocol::Logprobs, protocol::Release>;
  bool released = false;
  Result<std::vector<float>> on(protocol::Logprobs m) {
    if (released) return fail(Errc::closed, "released");
    std::vector<float> logp;
    for (const auto token : m.batch.tokens) logp.push_back(-0.1f * static_cast<float>(token));
    return logp;
  }
  void on(protocol::Release) { released = true; }
};

/// A FakePolicy that also returns a value for every requested state.
struct FakeCritic {
  using Handled =
      actors::Messages<protocol::TrainStep, protocol::Score, protocol::Save, protocol::FinishSave>;
  FakePolicy trained;

  protocol::StepStats on(protocol::TrainStep m) {
    auto stats = trained.on(std::move(m));
    stats.metrics = {{"loss/value_avg", stats.loss}};
    return stats;
  }
  std::vector<float> on(protocol::Score m) {
    std::vector<float> values;
    for (std::size_t t = 0; t < m.batch.tokens.size(); ++t)
      values.push_back(m.batch.mask[t] * static_cast<float>(trained.weight) * 0.01f *
                       static_cast<float>(m.batch.tokens[t]));
    return values;
  }
  std::string on(protocol::Save m) {
    trained.saved->push_back(cat("critic ", m.step));
    const std::string path = cat("critic/checkpoint-", m.step);
    if (!m.overlapped) return path;
    trained.writing = path;
    return "";
  }
  std::string on(protocol::FinishSave m) { return trained.on(m); }
};

struct FakeRollout {
  using Handled = actors::Messages<protocol::Generate, protocol::PrepareWeights,
                                   protocol::CommitWeights, protocol::CancelSamples>;
  protocol::Weights weights, prepared;
  float probe_error = 0;  ///< what is wrong with the weights that arrive
  std::vector<protocol::Completion> on(protocol::Generate m) {
    std::vector<protocol::Completion> drawn;
    for (const auto& draw : m.requests) {
      const auto token = static_cast<std::int32_t>(
          (draw.sample_id * 7 + static_cast<std::uint64_t>(draw.prompt.at(0))) % 31);
      drawn.push_back({draw.sample_id,
                       {token, 3},
                       {-weights.values->front(), -1.0f},
                       {},
                       cat(token),
                       protocol::FinishReason::stop,
                       {{weights.version, 2}},
                       weights.updates});
    }
    return drawn;
  }
  std::vector<float> on(protocol::PrepareWeights m) {
    prepared = std::move(m.weights);
    return {prepared.values->front() + probe_error};
  }
  std::uint64_t on(protocol::CancelSamples) { return 0; }
  void on(protocol::CommitWeights m) {
    check(m.version == prepared.version, "commit of another version than was prepared");
    weights = prepared;
  }
};

struct FakeVerifier {
  using Handled = actors::Messages<protocol::ComputeRewards>;
  std::vector<protocol::RewardResult> on(protocol::ComputeRewards m) {
    std::vector<protocol::RewardResult> verdicts;
    for (const auto& s : m.requests)
      verdicts.push_back({static_cast<double>(s.completion.size() + s.completion[0] % 3u), {}, ""});
    return verdicts;
  }
};

class Remembering final : public Journal {
 public:
  void begin(std::int64_t, std::int64_t) override {}
  void record(std::int64_t step, const Metrics& metrics) override {
    std::string line = cat("step ", step);
    for (const auto& [name, value] : metrics) line += cat(' ', name, '=', value);
    lines.push_back(line);
    records.push_back(metrics);
  }
  void sample(std::int64_t step, const Sample& s) override {
    lines.push_back(cat("sample of ", step, ": ", s.sample_id, ' ', s.prompt, ' ', s.completion,
                        ' ', s.reward, ' ', s.advantage));
    answers.push_back(s.answer);
  }
  void status(std::string_view) override {}
  void processed(const Processed& batch) override { work.push_back(batch); }
  void passed(const ModelPass& pass) override { passes.push_back(pass); }
  std::vector<std::string> lines;
  std::vector<Metrics> records;
  std::vector<Processed> work;
  std::vector<ModelPass> passes;
  std::vector<Json> answers;  ///< of the samples
};

/// Metrics with this one, and with others.
inline auto has_metric(const char* name, testing::Matcher<double> value = testing::_) {
  return testing::Contains(testing::Pair(testing::StrEq(name), std::move(value)));
}
inline auto has_evaluation() {
  return testing::Contains(testing::Pair(testing::StartsWith("eval/"), testing::_));
}

}  // namespace troupe::algorithms
