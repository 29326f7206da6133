// The seccomp filter of sandboxed programs.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "actors/sandbox/limits.h"

namespace troupe::actors::sandbox {

/// Denies system calls that reach out of the sandbox with EPERM: mounts, namespaces, other
/// processes' memory, kernel keys, the clock, kernel programs, and sockets other than local ones.
/// Under Isolation::limits it also denies leaving the process group, so that one signal ends all
/// processes.
std::vector<sock_filter> make_filter(const Limits& limits);

}  // namespace troupe::actors::sandbox
