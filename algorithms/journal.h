// Journal: where an algorithm writes down what happened. A port: launch/journal writes files and a
// progress bar, tests remember.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::algorithms {

/// The numbers of one optimizer step, in the order in which they are to be read. "loss" and
/// "grad_norm" come first; names are those users know from TRL and verl ("rewards/chosen", "kl",
/// "completions/mean_length"...). "tokens" (trained in this step) and "learning_rate" feed the
/// progress bar.
using Metrics = std::vector<std::pair<std::string, double>>;

/// One generated text, for a person to read.
struct Sample {
  std::uint64_t sample_id = 0;
  std::string prompt, completion, finish_reason;
  double reward = 0;
  double advantage = 0;
  std::vector<std::pair<std::string, double>>
      parts;  ///< the reward's parts, by rule, before weighting
};

class Journal {
 public:
  virtual ~Journal() = default;
  /// Called once, before the first step: the steps of the whole run (for the ETA) and the steps
  /// that are already done.
  virtual void begin(std::int64_t total_steps, std::int64_t done_steps) = 0;
  /// Steps count from 1 and rise by one; each is recorded once, after its update and before its
  /// checkpoint is saved. Not-a-number is written as null, never hidden.
  virtual void record(std::int64_t step, const Metrics& metrics) = 0;
  /// Some of the samples of a step; call it before record() of that step.
  virtual void sample(std::int64_t step, const Sample& sample) = 0;
  /// What the run is doing between steps ("generating 64 samples"); overwritten by the next.
  virtual void status(std::string_view text) = 0;
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
