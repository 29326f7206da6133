// The progress display on stderr: one line that is redrawn on a terminal, occasional plain lines
// otherwise.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/training/journal.h"

namespace troupe::launch::journal {

/// "1:02:03", "2:03", "0:07".
std::string clock_text(double seconds);

/// The throughput of one step.
struct StepSpeed {
  double tokens = 0;
  double seconds = 0;  ///< without evaluation and checkpoints
};

class Progress {
 public:
  struct Options {
    bool terminal = false;
    /// Width of the terminal now: it is asked at every redraw.
    std::function<int()> columns = [] { return 100; };
    std::int64_t log_every = 1;  ///< not a terminal: steps between lines; 0: no lines
    double interval = 1;         ///< not a terminal: minimum seconds between lines
  };
  /// `now` returns seconds; tests pass their own clock.
  Progress(std::FILE* out, Options options, std::function<double()> now);

  void begin(std::int64_t total_steps, std::int64_t done_steps);
  void step(std::int64_t step, const algorithms::Metrics& metrics, StepSpeed speed);
  /// `total` 0: the number of parts is not known.
  void status(std::string_view text, std::int64_t done = 0, std::int64_t total = 0);
  /// Removes the line from the terminal and restores it, before and after every log line.
  void hide();
  void show();
  /// Leaves the final line on the terminal.
  void finish();
  /// The current line: "step 12/300 [###.......] reward 0.42 kl 0.01 1234 tok/s ETA 1:05". During
  /// an evaluation its bar takes the place of the run's. At most `columns` wide: the less important
  /// fields are left out first, the step and the ETA last. 0: no limit.
  std::string line(int columns = 0) const;

 private:
  struct Field {
    int rank;  ///< fields of a higher rank are left out first
    std::string text;
  };
  std::vector<Field> fields(int bar) const;

  std::FILE* out_;
  Options options_;
  std::function<double()> now_;
  double started_ = 0, last_line_ = -1e300, tokens_ = 0, seconds_ = 0;
  std::int64_t total_ = 0, first_ = 0, done_ = 0, status_done_ = 0, status_total_ = 0;
  algorithms::Metrics shown_;
  std::string status_;
};

/// Options for the present stderr; no progress is shown above log level info.
Progress::Options stderr_options(std::int64_t log_every);

}  // namespace troupe::launch::journal
