// Processors of this machine and of this process.
#pragma once

namespace troupe::engine {

/// Number of processors that the calling thread may use (sched_getaffinity); at least 1.
int usable_processors();
/// Pins the calling thread to usable processor `index`, counted from 0. Errors are ignored.
void pin_to_processor(int index);
/// Number of processors of the machine; at least usable_processors().
int all_processors();

}  // namespace troupe::engine
