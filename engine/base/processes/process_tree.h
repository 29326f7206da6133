// Process trees of this host.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace troupe {

/// A process, or one that has ended and that its parent has not waited for.
struct ProcessEntry {
  pid_t id = 0, parent = 0, group = 0;
  bool ended = false;
  /// Processor time of it and of the children that it waited for, in clock ticks.
  std::uint64_t ticks = 0;
};

/// The descendants of the calling process, parents before their children.
std::vector<ProcessEntry> descendants();

/// The members of a process group and the descendants of its leader, among `processes`.
std::vector<ProcessEntry> members_of(pid_t leader, const std::vector<ProcessEntry>& processes);

/// Number of processes and threads of `user` on this host.
int tasks_of(unsigned user);

}  // namespace troupe
