// The durable state of a run that samples while it trains, and a policy that writes it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/algorithms/stage.h"

namespace troupe::algorithms {

inline constexpr std::int64_t run_steps = 12;

/// The durable state of a run: of the policy, of the algorithm, and older weights.
struct Disk final : WeightVersions {
  struct Checkpoint {
    std::uint64_t updates = 0;
    double weight = 1;
    protocol::RunState state;
  };
  std::map<std::int64_t, Checkpoint> checkpoints;
  std::map<std::int64_t, std::vector<SharedWeights>> versions;

  std::map<std::int64_t, std::vector<FinishedSample>> samples;

  std::string save(std::int64_t step, const std::vector<SharedWeights>& weights,
                   const std::vector<FinishedSample>& finished) override {
    versions[step] = weights;
    samples[step] = finished;
    return "kept";
  }
  std::vector<FinishedSample> load_samples(std::int64_t step) override { return samples[step]; }
  SharedWeights load(std::int64_t step, std::uint64_t version) override {
    for (const auto& weights : versions.at(step))
      if (weights->version == version) return weights;
    throw Failure({Errc::not_found, "no such version"});
  }
};

/// A policy that writes to the disk, and records when it trains.
struct DiskPolicy {
  using Handled = FakePolicy::Handled;
  FakePolicy policy;
  Disk* disk;
  std::vector<std::string>* events;

  protocol::StepStats on(protocol::TrainStep m) {
    events->push_back(cat("train ", policy.version));
    return policy.on(std::move(m));
  }
  auto on(protocol::Logprobs m) { return policy.on(std::move(m)); }
  auto on(protocol::Score m) { return policy.on(std::move(m)); }
  auto on(protocol::Publish m) { return policy.on(m); }
  std::string on(protocol::Save m) {
    disk->checkpoints[m.step] = {policy.version, policy.weight, m.state};
    return cat("checkpoint-", m.step);
  }
  auto on(protocol::FinishSave m) { return policy.on(m); }
};

inline Loader<PromptRow> many_prompts() {
  engine::data::Dataset<PromptRow> rows;
  for (int i = 0; i < 40; ++i)
    rows.examples.push_back({{i % 20 + 4, 9}, cat("prompt ", i), Json(i), Json()});
  return {std::move(rows), three_a_step};
}

/// Continues from the newest checkpoint of the disk, with a policy that writes to it.
inline void restore(Disk& disk, Stage& stage, TrainingPlan& plan, Loader<PromptRow>& data,
                    std::vector<std::string>& events) {
  FakePolicy policy{&stage.saved};
  if (!disk.checkpoints.empty()) {
    const auto& [step, saved] = *disk.checkpoints.rbegin();
    policy.version = saved.updates;
    policy.weight = saved.weight;
    plan.done = step;
    plan.batches_done = saved.state.batches;
    plan.versions = saved.state.versions;
    value_or_throw(data.restore(saved.state.data));
  }
  stage.cluster.policy =
      stage.home.spawn("saving", DiskPolicy{policy, &disk, &events}, {.executor = "policy"});
  stage.cluster.versions = &disk;
}

}  // namespace troupe::algorithms
