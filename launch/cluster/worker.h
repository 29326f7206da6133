// `troupe worker`: one rank of one group of `troupe launch`. It reads its assignment from stdin and
// exits at the end of stdin.
#pragma once

namespace troupe::launch {

/// Returns the exit code. Throws Failure.
int worker();

}  // namespace troupe::launch
