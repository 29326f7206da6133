// Processors of this machine, and which of them may be used.
#pragma once

namespace troupe::engine {

/// Processors that the calling thread may use (sched_getaffinity): those of the process, but for a
/// thread that is pinned. At least 1.
int usable_processors();
/// The calling thread stays on one of those from now on, the first being 0. A kernel that refuses
/// leaves it where it is.
void stay_on_processor(int which);
/// Those that the machine has. At least as many.
int all_processors();

}  // namespace troupe::engine
