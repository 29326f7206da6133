// Processors of this machine, and which of them may be used.
#pragma once

namespace troupe::engine {

/// Processors that the calling thread may use (sched_getaffinity): those of the process, but for a thread that is pinned. At least 1.
int usable_processors();
/// Those that the machine has. At least as many.
int all_processors();

}  // namespace troupe::engine
