// Log lines of Megatron-LM (megatron/training/training.py, training_log() and
// evaluate_and_print_results() of core 0.8), for tools that read them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "algorithms/training/journal.h"

namespace troupe::launch::journal {

/// What the lines need to know of a run.
struct MegatronLogOptions {
  std::int64_t every = 1;  ///< steps between lines, over which losses and times are averaged
  int ranks = 1;
  /// Samples of the first `steps` batches of the run.
  std::function<std::int64_t(std::int64_t steps)> consumed;
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
  MegatronLogOptions options_;
  std::int64_t total_ = 0, steps_ = 0;
  double loss_ = 0, seconds_ = 0, flops_ = 0;
  double skipped_ = 0;  ///< updates of the run, at the last line
};

}  // namespace troupe::launch::journal
