// Memory that is left for this process, and the most that it had.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// A limit of no size.
inline constexpr std::uint64_t no_memory_limit = ~std::uint64_t{0};

/// Files of a control group with a memory controller: memory.max, memory.current and memory.stat
/// (version 2), or memory.limit_in_bytes, memory.usage_in_bytes and memory.stat (version 1).
struct GroupReading {
  std::string path;  ///< for messages
  std::string limit, used, statistics;
};

/// What the kernel states of the memory of this process and machine.
struct MemoryReadings {
  std::string meminfo;               ///< /proc/meminfo
  std::string status;                ///< /proc/self/status
  std::vector<GroupReading> groups;  ///< the process's own control group and those around it
  /// RLIMIT_AS and RLIMIT_DATA in bytes (getrlimit(2)).
  std::uint64_t address_space = no_memory_limit, data = no_memory_limit;
};
MemoryReadings read_memory();

/// Bytes that are left, and by which limit: "MemAvailable of /proc/meminfo".
struct MemoryRoom {
  std::uint64_t bytes = 0;
  std::string limit;  ///< "": unknown
  bool known() const { return !limit.empty(); }
};

struct AvailableMemory {
  MemoryRoom machine;  ///< of all processes together: MemAvailable and the control groups
  MemoryRoom process;  ///< of this process, by its own limits
  /// The smaller one of those that are known.
  const MemoryRoom& least() const;
};

/// The least of each kind. The page cache of a control group counts as free, as in MemAvailable:
/// the kernel drops it when memory is needed.
AvailableMemory available_memory(const MemoryReadings& readings);

/// Bytes of available_memory().least() now; 0: unknown.
std::uint64_t memory_available();

/// The most physical memory that this process has had at a time, in bytes (VmHWM of
/// /proc/self/status); 0: unknown.
std::uint64_t peak_resident_memory();

}  // namespace troupe
