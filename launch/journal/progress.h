// The progress of a run: what its line (launch/terminal/progress_line.h) shows.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/training/journal.h"
#include "launch/terminal/progress_line.h"

namespace troupe::launch::journal {

/// The throughput of one step.
struct StepSpeed {
  double tokens = 0;
  double seconds = 0;  ///< without evaluation and checkpoints
};

class Progress {
 public:
  /// `log_every`: not a terminal: steps between lines; 0: no lines. `now` as ProgressLine.
  Progress(std::FILE* out, terminal::ProgressLine::Options options, std::int64_t log_every,
           std::function<double()> now);
  Progress(const Progress&) = delete;

  void begin(std::int64_t total_steps, std::int64_t done_steps);
  void step(std::int64_t step, const algorithms::Metrics& metrics, StepSpeed speed);
  /// `total` 0: the number of parts is not known.
  void status(std::string_view text, std::int64_t done = 0, std::int64_t total = 0);
  /// Removes the line from the terminal and restores it, before and after every log line.
  void hide() { line_.hide(); }
  void show() { line_.redraw(); }
  /// Leaves the final line on the terminal.
  void finish();
  /// The current line: "step 12/300 [###.......] reward 0.42 kl 0.01 1234 tok/s ETA 1:05". During
  /// an evaluation its bar takes the place of the run's. At most `columns` wide: the less important
  /// fields are left out first, the step and the ETA last. 0: no limit.
  std::string line(int columns = 0) const { return line_.line(columns); }

 private:
  std::vector<terminal::ProgressField> fields(int bar) const;

  std::int64_t log_every_;
  bool terminal_;
  std::function<double()> now_;
  double started_ = 0, tokens_ = 0, seconds_ = 0;
  std::int64_t total_ = 0, first_ = 0, done_ = 0, status_done_ = 0, status_total_ = 0;
  algorithms::Metrics shown_;
  std::string status_;
  terminal::ProgressLine line_;
};

}  // namespace troupe::launch::journal
