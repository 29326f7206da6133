// timings.jsonl: where the time of each step went, and the throughput. It is not
// part of metrics.jsonl, because identical runs have the same metrics but not the same times.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/training/journal.h"
#include "engine/base/files/output_folder.h"
#include "launch/journal/step_times.h"

namespace troupe::launch::journal {

/// What is known of a run before its first step.
struct Measured {
  /// The parts that the method has, besides `other`; they are in every line.
  std::vector<StepPart> parts{StepPart::update, StepPart::save};
  /// FLOPs of a pass: those that the method needs, and those with what is computed again.
  std::function<std::pair<double, double>(const algorithms::ModelPass&)> flops;
  double peak_tflops = 0;   ///< denominator of mfu and hfu; 0: unknown
  std::string peak_source;  ///< "train.peak_tflops", "measured on 2 processors in f32"
};

/// Sums of a step.
struct StepWork {
  algorithms::Processed processed;
  double model_flops = 0, hardware_flops = 0;
  void add(const algorithms::Processed& more);
};

/// timing/PART and timing/non_overlap_PART in seconds, perf/{tokens_per_second, samples_per_second,
/// tflops, mfu, hfu} and epoch, where they are known.
algorithms::Metrics timing_metrics(const StepSeconds& seconds, const StepWork& work,
                                   const Measured& measured);

/// The first line of a file, and of each resumed part: {"time", "steps" (of the run),
/// "peak_tflops", "peak", "resumed_after_step"}.
std::string timings_header(double now, std::int64_t steps, std::int64_t done_steps,
                           const Measured& measured);
/// {"step", "time", "wall", ..., "warnings"}. `wall`: seconds of the run so far, over all of its
/// parts. `warnings`: those that the metrics of the step gave.
std::string timings_line(std::int64_t step, double now, double wall,
                         const algorithms::Metrics& metrics,
                         const std::vector<std::string>& warnings = {});

/// How a part of a run ended. A part that was killed has no line that says so.
enum class RunEnd { complete, interrupted, failed };
constexpr std::array<std::string_view, 3> names_of(RunEnd) {
  return {"complete", "interrupted", "failed"};
}
/// The last line of a part: {"time", "ended"}.
std::string timings_end(double now, RunEnd how);

/// Removes what follows the line of `step`, as truncate_after() does, and keeps the headers of the
/// rest. Returns `wall` of the last line, 0 without one. Errc::io.
Result<double> truncate_timings_after(const OutputFolder& folder, const std::string& name,
                                      std::int64_t step);

}  // namespace troupe::launch::journal
