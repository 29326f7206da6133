// Journal: the port through which an algorithm records metrics and samples. launch/journal writes
// files and a progress bar; tests store the records.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/protocol/train.h"
#include "algorithms/training/work.h"
#include "engine/base/json/json.h"
#include "engine/base/sets/id_sets.h"

namespace troupe::algorithms {

/// Metrics of one optimizer step in display order: "loss" and "grad_norm" first. Names are those of
/// TRL and verl ("rewards/chosen", "kl", "completions/mean_length"...). "tokens" are those of the
/// step's batch, prompts included. A mean of nothing is NaN, never 0.
using Metrics = std::vector<std::pair<std::string, double>>;

/// The value of a metric; nullptr without it.
inline const double* find_metric(const Metrics& metrics, std::string_view name) {
  const auto found =
      std::ranges::find_if(metrics, [name](const auto& metric) { return metric.first == name; });
  return found == metrics.end() ? nullptr : &found->second;
}

/// One generated text, for display.
struct Sample {
  std::uint64_t sample_id = 0;
  std::string prompt, completion, finish_reason;
  double reward = 0;  ///< NaN: failed
  double advantage = 0;
  Json answer;  ///< the reference answer of the row, or null
  /// The reward's parts by rule, before weighting.
  std::vector<std::pair<std::string, double>> parts;
  std::vector<std::int32_t> prompt_ids = {}, ids = {};
  std::vector<float> logprobs = {};  ///< [ids] under the weights that sampled the token
  IdSets masks = {};  ///< [ids] the tokens that each was sampled from; empty: the whole vocabulary
  /// Weight versions of consecutive tokens of `ids`, and how many tokens each sampled.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> versions = {};
  /// [ids] 1 where the policy sampled the token, 0 where another wrote it, such as a tool; empty:
  /// it sampled all of them. `pieces`: the completion by these marks, which the journal fills.
  std::vector<std::uint8_t> sampled = {};
  std::vector<std::pair<std::string, bool>> pieces = {};
};

/// What an algorithm does itself, and what its requests to actors are for.
enum class Activity {
  other,
  advantage,  ///< from the samples to the batches of the updates
  evaluation
};

/// What the two sides of a run with async.mode other than off do.
struct Overlap {
  std::int64_t queue = 0;            ///< complete batches that wait for training
  std::int64_t in_flight = 0;        ///< samples that are generated or rewarded
  bool waiting_for_weights = false;  ///< the next batch starts when its version is published
  std::int64_t rollouts = 0, idle_rollouts = 0;  ///< all, and those without a request
  bool policy_waits = false;                     ///< for a batch to train on
  /// A batch has been trained, and another has not been started: neither side fills or drains.
  bool steady = false;
};

class Journal {
 public:
  virtual ~Journal() = default;
  /// Called once, before the first step: the steps of the whole run (for the ETA) and the steps
  /// that are already done.
  virtual void begin(std::int64_t total_steps, std::int64_t done_steps) = 0;
  /// Steps count from 1 and increase by one; each is recorded once, after its update and before its
  /// checkpoint is saved. Step 0 is an evaluation before the first update, where there is one. NaN
  /// is written as null.
  virtual void record(std::int64_t step, const Metrics& metrics) = 0;
  /// Some of the samples of a step; call it before record() of that step.
  virtual void sample(std::int64_t step, const Sample& sample) = 0;
  /// Loads of the experts in the batch of a step; call it before record() of that step.
  virtual void loads(std::int64_t /*step*/, const actors::protocol::ExpertLoads&) {}
  /// Makes the records durable; called before the checkpoint of step `step` is saved, so that no
  /// checkpoint has steps that a power failure takes from the journal. Returns what a resumed run
  /// compares the records with (RunState::journal).
  virtual Json commit(std::int64_t /*step*/) { return {}; }
  /// The current activity between steps ("generating 64 samples"); replaced by the next.
  virtual void status(std::string_view text) = 0;
  /// Rewards failed (rollout/reward_failures.h), so the run ends before its next batch; the same
  /// command repeats that. `why` is the message of the failure.
  virtual void rewards_failed(std::string_view /*why*/) {}
  /// As status(), with the number of parts that are done.
  virtual void progress(std::string_view text, std::int64_t /*done*/, std::int64_t /*total*/) {
    status(text);
  }

  // For the throughput and the times of the step in progress, before its record(). They affect no
  // metric.
  virtual void enter(Activity) {}
  virtual void processed(const Processed&) {}
  virtual void passed(const ModelPass&) {}
  /// The state from now on.
  virtual void overlap(const Overlap&) {}
};

/// The activity of a scope.
class ActivityScope {
 public:
  ActivityScope(Journal& journal, Activity activity) : journal_(journal) {
    journal_.enter(activity);
  }
  ~ActivityScope() { journal_.enter(Activity::other); }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  Journal& journal_;
};

/// Drops everything.
class NoJournal final : public Journal {
 public:
  void begin(std::int64_t, std::int64_t) override {}
  void record(std::int64_t, const Metrics&) override {}
  void sample(std::int64_t, const Sample&) override {}
  void status(std::string_view) override {}
};

}  // namespace troupe::algorithms
