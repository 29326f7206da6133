// The trace of a recorder for chrome://tracing and ui.perfetto.dev.
#pragma once

#include <string>

#include "launch/profile/recorder.h"

namespace troupe::launch {

/// One JSON object with one event per line. The process is the rank; its threads are the work (0)
/// and the steps (1).
std::string trace_json(const Recorder& recorder, const RecordedRank& of);

}  // namespace troupe::launch
