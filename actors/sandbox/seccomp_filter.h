// The seccomp filter of sandboxed programs.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "actors/sandbox/limits.h"
#include "engine/base/errors/error.h"

namespace troupe::actors::sandbox {

/// Largest shared mapping without a file, where the census cannot read how much memory one holds
/// (census.h): it then counts each as this many bytes.
inline constexpr unsigned long long max_uncounted_mapping = 4ull << 20;

/// Allows the calls of the lists of seccomp_filter.cpp and returns ENOSYS for every other one, also
/// for calls that this version does not know. Calls with several uses are allowed for the harmless
/// ones: clone without namespaces and CLONE_PARENT, socketpair for connected streams, prctl, ioctl,
/// fcntl, setsockopt and prlimit64 by their operation. Other ABIs (i386, x32) end the process.
/// Under Isolation::limits it also denies leaving the process group, so that one signal ends all
/// processes, and kill(-1). `counts_mappings`: the census reads what shared mappings hold.
/// Errc::unsupported.
Result<std::vector<sock_filter>> make_filter(const Limits& limits, bool counts_mappings);

}  // namespace troupe::actors::sandbox
