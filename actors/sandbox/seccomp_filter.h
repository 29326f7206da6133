// The system calls that a contained program may not make, as a seccomp filter.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "actors/sandbox/limits.h"

namespace troupe::actors::sandbox {

/// Everything that reaches out of the box (mounts, namespaces, other processes' memory, the
/// kernel's keys, clock and programs, sockets other than local ones) is answered with EPERM; the
/// rest is left to the limits. With Isolation::limits leaving the process group too, so that one
/// signal ends all that it started.
std::vector<sock_filter> make_filter(const Limits& limits);

}  // namespace troupe::actors::sandbox
