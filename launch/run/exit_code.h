// Exit codes of the process, by kind of failure, so that scripts can distinguish a usage error from
// a full disk.
#pragma once

#include "engine/base/error.h"

namespace troupe::launch {

/// 0 success, 2 usage, 3 bad input, 4 not found, 5 corrupt, 6 unsupported, 7 io, 8 timeout, 9
/// closed, 10 full, 11 a process of the cluster exited, 70 internal error, 130 interrupted (Ctrl-C
/// or SIGTERM, after a checkpoint). 1 is never used: shells and sanitizers return it.
int exit_code(Errc code);

inline constexpr int exit_usage = 2;
inline constexpr int exit_process_died = 11;
inline constexpr int exit_internal = 70;
inline constexpr int exit_interrupted = 130;

}  // namespace troupe::launch
