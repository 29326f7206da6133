// RunJournal: the journal of a run, in its output directory and on stderr.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/runtime/ask_record.h"
#include "algorithms/journal.h"

namespace troupe::launch {

class Progress;

/// Writes metrics.jsonl, events.out.tfevents.*, samples.txt, samples.jsonl, timeline.jsonl and two
/// plots, and displays the progress. begin() truncates the files to the completed steps. Record a
/// step before its checkpoint is saved, so that the files contain every step of a checkpoint.
/// Throws Failure (Errc::io) if a file cannot be written. At most one object at a time, because log
/// lines use its progress line.
class RunJournal final : public algorithms::Journal {
 public:
  /// `folder` must exist. `title`: title of the plot.
  RunJournal(std::string folder, std::string title, std::int64_t log_every);
  ~RunJournal() override;

  void begin(std::int64_t total_steps, std::int64_t done_steps) override;
  void record(std::int64_t step, const algorithms::Metrics& metrics) override;
  void sample(std::int64_t step, const algorithms::Sample& sample) override;
  void status(std::string_view text) override;
  /// Handler for NodeOptions::on_answered of the node that executes the algorithm.
  void answered(const actors::AskRecord& ask);
  /// Sets a function that is called with the number of each step when it begins.
  void on_step(std::function<void(std::int64_t step)> begins) { on_step_ = std::move(begins); }
  /// Draws plot.svg and timeline.svg; the destructor does so, too. An error is logged as a warning.
  void plot();

 private:
  struct Files;
  std::string folder_, title_;
  std::unique_ptr<Files> files_;
  std::unique_ptr<Progress> progress_;
  std::function<void(std::int64_t)> on_step_;
};

}  // namespace troupe::launch
