// RunJournal: the journal of a run, in its output directory and on stderr.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/runtime/ask_record.h"
#include "algorithms/health.h"
#include "algorithms/training/journal.h"
#include "engine/base/files/output_folder.h"
#include "launch/journal/async_times.h"
#include "launch/journal/commit_record.h"
#include "launch/journal/timings_file.h"

namespace troupe::launch::journal {

/// What the lines need to know of a run.
struct MegatronLogOptions {
  std::int64_t every = 1;   ///< steps between lines, over which losses and times are averaged
  bool throughput = false;  ///< states FLOP/s
  int ranks = 1;
  /// Samples of the first `steps` batches of the run.
  std::function<std::int64_t(std::int64_t steps)> consumed;
  /// Learning rate of a step of a run of `total` steps. A line has that of the step behind it: the
  /// schedule has advanced when Megatron prints.
  std::function<double(std::int64_t total, std::int64_t step)> learning_rate;
};

class MegatronLog {
 public:
  explicit MegatronLog(MegatronLogOptions options) : options_(std::move(options)) {}
  void begin(std::int64_t total_steps) { total_ = total_steps; }
  /// The lines of a step, each with its newline, or "". `seconds` without evaluation and
  /// checkpoints; `clock`: seconds since 1970.
  std::string step(std::int64_t step, const algorithms::Metrics& metrics, double seconds,
                   double flops, double clock);

 private:
  /// That of the steps since the last one.
  std::string line(std::int64_t step, const algorithms::Metrics& metrics, double clock);

  MegatronLogOptions options_;
  std::int64_t total_ = 0, steps_ = 0;
  double loss_ = 0, seconds_ = 0, flops_ = 0;
  std::array<double, 2> sums_{};  ///< of the metrics beside the loss
  double skipped_ = 0;            ///< updates of the run, at the last line
};

class Progress;
struct StepSpeed;

/// Writes metrics.jsonl, timings.jsonl, events.out.tfevents.*, samples.txt, samples.jsonl,
/// experts.jsonl (of mixtures of experts),
/// timeline.jsonl and two plots, displays the progress, and logs evaluations and warnings of
/// failed training. begin() truncates the files to the completed steps and reports what a power
/// failure has taken from them. Record a step and commit() before its checkpoint is saved, so that
/// the files contain every step of a checkpoint. Throws Failure (Errc::io) if metrics.jsonl or
/// samples.jsonl cannot be written; the other files are given up with a warning. At most one
/// object at a time, because log lines use its progress line.
class RunJournal final : public algorithms::Journal {
 public:
  /// `title`: title of the plot. `method`: the section of its settings, for advice.
  RunJournal(OutputFolder folder, std::string title, std::string method, std::int64_t log_every);
  ~RunJournal() override;

  /// Size limit of the timeline's files; 0: none are written. Before begin().
  void limit_timeline(std::uint64_t bytes) { timeline_bytes_ = bytes; }
  /// Prints Megatron's log lines on stdout; before begin().
  void log_as_megatron(MegatronLogOptions options) { megatron_.emplace(std::move(options)); }
  /// The record of the checkpoint that the run resumes from (what commit() returned), if it is one
  /// of this directory; before begin().
  void expect(const Json& journal) { expected_ = journal_record(journal); }
  /// A completion's text by who wrote it, for samples that others wrote a part of.
  using Pieces = std::function<std::vector<std::pair<std::string, bool>>(
      std::span<const std::int32_t> ids, std::span<const std::uint8_t> sampled)>;
  void split_by(Pieces pieces) { pieces_ = std::move(pieces); }
  /// What the run is measured by; before begin().
  void measure(Measured measured) { measured_ = std::move(measured); }
  void begin(std::int64_t total_steps, std::int64_t done_steps) override;
  void record(std::int64_t step, const algorithms::Metrics& metrics) override;
  void sample(std::int64_t step, const algorithms::Sample& sample) override;
  void loads(std::int64_t step, const actors::protocol::ExpertLoads& of_step) override;
  Json commit(std::int64_t step) override;
  void status(std::string_view text) override { progress(text, 0, 0); }
  void rewards_failed(std::string_view why) override { failed_rewards_ = why; }
  /// The message of rewards_failed(), or "".
  const std::string& failed_rewards() const { return failed_rewards_; }
  void progress(std::string_view text, std::int64_t done, std::int64_t total) override;
  void enter(algorithms::Activity activity) override;
  void processed(const algorithms::Processed& batch) override { work_.add(batch); }
  void passed(const algorithms::ModelPass& pass) override;
  void overlap(const algorithms::Overlap& now) override;
  /// Times without work of a run with async.mode on, while both sides had batches.
  IdleSeconds idle() const { return async_.idle(); }
  /// Handler for NodeOptions::on_answered of the node that executes the algorithm.
  void answered(const actors::AskRecord& ask);
  /// Sets a function that is called with the number of each step when it begins.
  void on_step(std::function<void(std::int64_t step)> begins) { on_step_ = std::move(begins); }
  /// Sets a function whose metrics of the step in progress are added to timings.jsonl.
  void add_times(std::function<algorithms::Metrics()> times) { more_times_ = std::move(times); }
  /// Records how this part of the run ended; the destructor records `failed`, unless this was
  /// called.
  void end(RunEnd how);
  /// Draws plot.svg and timeline.svg; the destructor does so, too, if steps were recorded since. An
  /// error is logged as a warning.
  void plot();

 private:
  struct Files;
  void open_files(std::int64_t done_steps);
  algorithms::Metrics end_step_times(std::int64_t step, const std::vector<std::string>& warnings);
  void print_as_megatron(std::int64_t step, const algorithms::Metrics& metrics,
                         const StepSpeed& speed);
  void log_findings(std::int64_t step, const algorithms::Metrics& metrics,
                    const std::vector<std::string>& warnings);

  OutputFolder folder_;
  std::string title_, failed_rewards_;
  std::unique_ptr<Files> files_;
  std::unique_ptr<Progress> progress_;
  std::function<void(std::int64_t)> on_step_;
  std::function<algorithms::Metrics()> more_times_;
  Measured measured_;
  Pieces pieces_;
  std::optional<MegatronLog> megatron_;
  StepTimes times_;
  AsyncTimes async_;
  StepSeconds seconds_;  ///< of the last step
  StepWork work_;        ///< of the step in progress
  double wall_before_ = 0, began_ = 0;
  engine::checkpoint::RunningChecksum metrics_sum_, samples_sum_;  ///< of the files so far
  std::int64_t metrics_lines_ = 0, samples_lines_ = 0;
  std::optional<JournalRecord> expected_;
  std::uint64_t timeline_bytes_ = std::uint64_t{64} << 20;
  bool plotted_ = true;  ///< since the last step
  bool ended_ = false;
  algorithms::HealthMonitor health_;
};

}  // namespace troupe::launch::journal
