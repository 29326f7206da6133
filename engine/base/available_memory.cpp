#include "engine/base/available_memory.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "engine/base/file.h"

namespace troupe {
namespace {

// "MemAvailable:   123 kB"
std::uint64_t machine_memory() {
  const std::string text = read_proc_file("/proc/meminfo");
  const auto at = text.find("MemAvailable:");
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + 13, nullptr, 10) * 1024;
}

/// 0: no limit.
std::uint64_t control_group_room() {
  const std::string limit = read_proc_file("/sys/fs/cgroup/memory.max"),
                    used = read_proc_file("/sys/fs/cgroup/memory.current");
  if (limit.empty() || limit.starts_with("max")) return 0;
  const std::uint64_t high = std::strtoull(limit.c_str(), nullptr, 10),
                      low = std::strtoull(used.c_str(), nullptr, 10);
  return high > low ? high - low : 1;
}

}  // namespace

std::uint64_t memory_available() {
  const std::uint64_t machine = machine_memory(), group = control_group_room();
  return group == 0 ? machine : machine == 0 ? group : std::min(machine, group);
}

}  // namespace troupe
