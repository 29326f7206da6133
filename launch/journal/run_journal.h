// RunJournal: the journal of a run in its output directory, and on stderr.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/runtime/ask_record.h"
#include "algorithms/journal.h"

namespace troupe::launch {

class Progress;

/// Writes metrics.jsonl, events.out.tfevents.*, samples.txt, samples.jsonl, timeline.jsonl and two
/// pictures, and shows the progress. begin() cuts the files back to the steps that are done. Record
/// a step before its checkpoint is saved: then what a checkpoint knows, the files know too. Throws
/// Failure (Errc::io) when a file cannot be written. One at a time: log lines find the progress
/// line through it.
class RunJournal final : public algorithms::Journal {
 public:
  /// `folder` must exist. `title` stands over the plot.
  RunJournal(std::string folder, std::string title, std::int64_t log_every);
  ~RunJournal() override;

  void begin(std::int64_t total_steps, std::int64_t done_steps) override;
  void record(std::int64_t step, const algorithms::Metrics& metrics) override;
  void sample(std::int64_t step, const algorithms::Sample& sample) override;
  void status(std::string_view text) override;
  /// For NodeOptions::on_answered of the node that runs the algorithm.
  void answered(const actors::AskRecord& ask);
  /// Called with the number of each step that begins, from now on.
  void on_step(std::function<void(std::int64_t step)> begins) { on_step_ = std::move(begins); }
  /// Draws plot.svg and timeline.svg from what is written so far; also at the end. A plot that
  /// cannot be drawn is a warning, never the end of a run.
  void plot();

 private:
  struct Files;
  std::string folder_, title_;
  std::unique_ptr<Files> files_;
  std::unique_ptr<Progress> progress_;
  std::function<void(std::int64_t)> on_step_;
};

}  // namespace troupe::launch
