// Ledger: what the simulated actors have seen of a run, compared with what has to happen. It
// outlives crashes; a resumed run goes back to its checkpoint.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/simulator/scenario.h"

namespace troupe::simulator {

namespace protocol = algorithms::protocol;

class Ledger {
 public:
  Ledger(const Scenario& scenario, const ExpectedBatches& expected)
      : scenario_(scenario), expected_(expected) {}

  /// A run starts from a checkpoint after `trained` batches.
  void begin(std::int64_t trained);
  /// The processes have died: nothing that still happens counts.
  void crash() { live_ = false; }
  bool live() const { return live_; }
  /// The run has reached its last step.
  void finish(std::int64_t batches);
  void violated(const std::string& text);
  const std::vector<std::string>& violations() const { return violations_; }

  // Rollouts.
  void take_over(std::uint64_t from, const protocol::Weights& to);
  void start(std::uint64_t sample_id, std::uint64_t version);
  // The verifier.
  void reward(std::uint64_t sample_id);
  // The policy.
  void train(const engine::data::Experience& batch);
  void publish(const protocol::Weights& weights);
  void save(std::int64_t step, const protocol::RunState& state);
  /// The samples that a checkpoint keeps, and those that a run starts with.
  void keep(const std::vector<algorithms::FinishedSample>& samples);
  void restore(const std::vector<algorithms::FinishedSample>& samples);
  // The journal.
  void show(const algorithms::Sample& sample);
  void record(std::int64_t step, const algorithms::Metrics& metrics);
  void overlap(const algorithms::Overlap& now);

 private:
  std::int64_t eta() const { return scenario_.async.eta; }
  bool pinned() const { return !scenario_.async.free(); }
  std::int64_t oldest_for(std::int64_t batch) const;
  void check_start(std::int64_t batch, std::int64_t version);
  void check_token(std::int64_t version, float logp);
  void check_tokens(const engine::data::Experience& batch, std::size_t sample);
  void check_samples(const engine::data::Experience& batch);

  const Scenario& scenario_;
  const ExpectedBatches& expected_;
  std::vector<std::string> violations_;
  bool live_ = true;
  std::size_t kept_ = 0;                      ///< samples of the newest keep()
  std::int64_t trained_ = 0, recorded_ = 0;   // batches; steps
  std::vector<std::uint64_t> of_this_batch_;  // trained samples of an incomplete batch
  std::int64_t shown_of_ = -1;                // batch of the samples that were shown last
  double staleness_ = 0;                      // of this batch
  std::map<std::int64_t, float> published_;   // version: its weight
  // Of this incarnation.
  std::map<std::uint64_t, std::vector<float>> shown_;      // sample: its log-probabilities
  std::set<std::uint64_t> started_, rewarded_, restored_;  // samples of training
  std::map<std::int64_t, std::set<std::uint64_t>> open_;   // batch: started, not rewarded
};

}  // namespace troupe::simulator
