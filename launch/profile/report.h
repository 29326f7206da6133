// Reports of a recorder: the table of operators, as CSV and as text, and the trace for
// chrome://tracing and ui.perfetto.dev.
#pragma once

#include <string>

#include "launch/profile/recorder.h"

namespace troupe::launch::profile {

/// Header and rows: kind, name, stack, shapes, calls, seconds, share_of_step, flops,
/// gflops_per_second, bytes, gb_per_second, share_of_ceiling, cores, instructions, cycles,
/// cache_misses. Values that were not measured are empty. Times of phases include those of the
/// operators inside; operators, communication and the row of kind `rest` add up to the time of the
/// steps.
std::string table_csv(const Recorder& recorder);

/// The table as text, operators first, then phases.
std::string table_text(const Recorder& recorder, const RecordedRank& of);

/// One JSON object with one event per line. The process is the rank; its threads are the work (0)
/// and the steps (1).
std::string trace_json(const Recorder& recorder, const RecordedRank& of);

}  // namespace troupe::launch::profile
