// The actors of a simulated run: they take time, answer with arithmetic, and tell the ledger what
// they receive.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/runtime/node.h"
#include "algorithms/training/cluster.h"
#include "tests/simulator/ledger.h"

namespace troupe::simulator {

using actors::Task;

/// The durable state of a run. A process that died writes no more.
class Store final : public algorithms::WeightVersions {
 public:
  struct Checkpoint {
    std::uint64_t updates = 0;
    double weight = 1;
    protocol::RunState state;
  };
  explicit Store(Ledger& ledger) : ledger_(ledger) {}
  std::string save(std::int64_t step, const std::vector<algorithms::SharedWeights>& weights,
                   const std::vector<algorithms::FinishedSample>& samples) override;
  algorithms::SharedWeights load(std::int64_t step, std::uint64_t version) override;
  std::vector<algorithms::FinishedSample> load_samples(std::int64_t step) override;
  void save(std::int64_t step, Checkpoint checkpoint);
  const std::map<std::int64_t, Checkpoint>& checkpoints() const { return checkpoints_; }

 private:
  Ledger& ledger_;
  std::map<std::int64_t, Checkpoint> checkpoints_;
  std::map<std::int64_t, std::vector<algorithms::FinishedSample>> samples_;
  std::map<std::int64_t, std::vector<algorithms::SharedWeights>> versions_;
};

/// Random times that an actor takes.
class Pace {
 public:
  Pace(actors::Node& node, std::uint64_t seed) : node_(&node), seed_(seed) {}
  /// Waits for up to `most` of virtual time.
  Task<void> pause(Milliseconds most);
  std::uint64_t below(std::uint64_t n);

 private:
  actors::Node* node_;
  std::uint64_t seed_, draws_ = 0;
};

/// Weights are one number, to which every trained sample contributes.
struct SimulatedPolicy {
  using Handled = actors::Messages<protocol::TrainStep, protocol::Logprobs, protocol::Score,
                                   protocol::Publish, protocol::Save, protocol::FinishSave>;
  Ledger* ledger;
  Store* store;
  Pace pace;
  std::uint64_t updates = 0;
  double weight = 1;
  /// A checkpoint that is not durable yet, and its step.
  std::optional<std::pair<std::int64_t, Store::Checkpoint>> writing = {};

  Task<protocol::StepStats> on(protocol::TrainStep m);
  Task<std::vector<float>> on(protocol::Logprobs m);
  Task<std::vector<float>> on(protocol::Score m);
  Task<protocol::Weights> on(protocol::Publish m);
  Task<std::string> on(protocol::Save m);
  Task<std::string> on(protocol::FinishSave m);
};

/// Takes time for every token. With async.mode free its weights are replaced between two of them.
struct SimulatedRollout {
  using Handled = actors::Messages<protocol::Generate, protocol::PrepareWeights,
                                   protocol::CommitWeights, protocol::CancelSamples>;
  Ledger* ledger;
  engine::generate::PartialSamples partial;
  Pace pace;
  std::uint64_t cancelled = 0;
  protocol::Weights weights = {}, prepared = {};

  Task<std::vector<protocol::Completion>> on(protocol::Generate m);
  Task<protocol::Completion> sample(std::uint64_t sample_id);
  void interrupt(protocol::Completion& c) const;
  void append(protocol::Completion& c) const;
  Task<std::vector<float>> on(protocol::PrepareWeights m);
  Task<void> on(protocol::CommitWeights m);
  Task<std::uint64_t> on(protocol::CancelSamples m);
};

struct SimulatedVerifier {
  using Handled = actors::Messages<protocol::ComputeRewards>;
  Ledger* ledger;
  Pace pace;
  Task<std::vector<protocol::RewardResult>> on(protocol::ComputeRewards m);
};

class LedgerJournal final : public algorithms::Journal {
 public:
  explicit LedgerJournal(Ledger& ledger) : ledger_(ledger) {}
  void begin(std::int64_t, std::int64_t) override {}
  void record(std::int64_t step, const algorithms::Metrics& metrics) override {
    ledger_.record(step, metrics);
  }
  void sample(std::int64_t, const algorithms::Sample& sample) override { ledger_.show(sample); }
  void status(std::string_view) override {}
  void overlap(const algorithms::Overlap& now) override { ledger_.overlap(now); }

 private:
  Ledger& ledger_;
};

}  // namespace troupe::simulator
