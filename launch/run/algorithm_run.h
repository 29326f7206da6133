// AlgorithmRun: a run in the process that executes its algorithm, for all placements: resumed
// state, journal, profile, and the algorithm over the actors.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "actors/runtime/node.h"
#include "actors/runtime/stop.h"
#include "algorithms/training/sample_ledger.h"
#include "algorithms/training/weight_versions.h"
#include "engine/base/threads/cancellation.h"
#include "launch/journal/run_journal.h"
#include "launch/profile/run_profile.h"
#include "launch/recipes/run_context.h"
#include "launch/run/placement.h"
#include "launch/run/session.h"
#include "launch/run/text_model.h"

namespace troupe::launch::run {

/// VersionStore: the weights that an asynchronous run keeps in its checkpoints, and its finished
/// samples, which are in its ledger: a checkpoint is saved when their rows are durable.
class VersionStore final : public algorithms::WeightVersions {
 public:
  /// `session`: the run's; outlives the store. Those that are loaded are of the checkpoint that it
  /// resumes from.
  explicit VersionStore(const Session& session) : session_(session) {}

  std::string save(std::int64_t step, const std::vector<algorithms::SharedWeights>& weights,
                   const std::vector<algorithms::FinishedSample>& samples) override;
  bool keeps_samples() const override;
  algorithms::SharedWeights load(std::int64_t step, std::uint64_t version) override;
  std::vector<algorithms::FinishedSample> load_samples(std::int64_t step) override;

 private:
  const Session& session_;
};

class AlgorithmRun final : public recipes::RunContext {
 public:
  /// `session` and `profile` outlive the run.
  AlgorithmRun(const Session& session, profile::RunProfile& profile);

  actors::Stop& stop() { return stop_; }
  journal::RunJournal& journal() { return journal_; }
  /// Sets a function that is called when the algorithm has ended without an error: its last
  /// checkpoint is complete, and no actor is needed any more.
  void on_complete(std::function<void()> call) { on_complete_ = std::move(call); }
  /// Options of the node that executes the algorithm: its calls are recorded in the journal.
  actors::NodeOptions node_options();
  /// Reads the data, runs the algorithm to its end or until stop(), and returns the process's exit
  /// code. Throws Failure.
  int run(Placement& placement, const TextModel& text);

  const config::RunConfig& config() const override { return session_.config(); }
  std::int64_t max_length() const override;
  const engine::data::TextEncoder& text() const override { return *text_; }
  const Json* saved_data() const override;
  Json algorithm_state() const override;
  engine::data::DataOptions data_options() const override;
  engine::data::LoaderOptions loader_options(std::int64_t batches_of) const override;
  algorithms::Cluster cluster() override;
  algorithms::TrainingPlan begin(std::int64_t batches, std::int64_t updates) override;
  int run(actors::Task<void> algorithm, const algorithms::TrainingPlan& plan) override;

 private:
  algorithms::WeightStream::Options stream_options() const;
  /// After an error, waits for a checkpoint that the policy is still writing, unless the policy
  /// does not answer or the user does not wait.
  void finish_save(const Error& why);
  /// Reports that rewards failed, and returns the exit code.
  int end_after_failed_rewards() const;

  const Session& session_;
  journal::RunJournal journal_;
  VersionStore versions_;
  std::optional<algorithms::SampleLedger> ledger_;  // set by run(), unless it is off
  std::optional<engine::ledger::Anchor> anchor_;    // of the checkpoint, if it has one
  std::optional<algorithms::WeightStream> stream_;
  actors::Stop stop_;
  std::function<void()> on_complete_;
  std::optional<CancellableReading> reading_{std::in_place};  // until the first step
  Placement* placement_ = nullptr;                            // set by run()
  const TextModel* text_ = nullptr;
  std::optional<algorithms::PolicyRef> policy_;  // set by cluster()
  std::optional<algorithms::CriticRef> critic_;
};

}  // namespace troupe::launch::run
