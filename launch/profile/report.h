// What a recorder found, as files: a trace for chrome://tracing and ui.perfetto.dev, a table of
// operators for programs and one for people.
#pragma once

#include <string>

#include "launch/profile/recorder.h"

namespace troupe::launch {

/// Whose recording it is.
struct ReportOf {
  std::string name;  ///< "rank 0", "rollout-0 rank 1"
  int rank = 0;
  std::int64_t origin = 0;  ///< the zero of the trace's times
};

/// One JSON object, an event a line. The process is the rank; its threads are its steps (1) and
/// what it did in them (0).
std::string trace_json(const Recorder& recorder, const ReportOf& of);

/// Header and rows: kind, name, stack, shapes, calls, seconds, share_of_step, flops,
/// gflops_per_second, bytes, gb_per_second, share_of_ceiling, cores, instructions, cycles,
/// cache_misses. What was not measured is empty. Times of phases hold those of the operators within
/// them; the operators and the communication, with the row of kind `rest`, make the whole of the
/// steps.
std::string table_csv(const Recorder& recorder);

/// The same for people, phases behind the operators.
std::string table_text(const Recorder& recorder, const ReportOf& of);

}  // namespace troupe::launch
