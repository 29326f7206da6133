// worker: one rank of one group of a launch. It reads its assignment from stdin and leaves when
// stdin ends.
#pragma once

namespace troupe::launch {

/// The exit code. Throws Failure.
int worker();

}  // namespace troupe::launch
