#include "engine/base/environment/available_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

/// Of a line "NAME 123" or "NAME:   123 kB"; `name` with its colon.
std::optional<std::uint64_t> line_value(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    std::uint64_t value = 0;
    if (words >> word >> value && word == name) return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> kibibytes(const std::string& text, std::string_view name) {
  const auto value = line_value(text, name);
  return value ? std::optional(*value * 1024) : std::nullopt;
}

std::uint64_t difference(std::uint64_t limit, std::uint64_t used) {
  return limit > used ? limit - used : 0;
}

void take_less(MemoryRoom& room, std::uint64_t bytes, const std::string& limit) {
  if (!room.known() || bytes < room.bytes) room = {bytes, limit};
}

void add_group(const GroupReading& group, MemoryRoom& room) {
  constexpr std::uint64_t unlimited = std::uint64_t{1} << 62;  // version 1: almost 2^63
  char* end = nullptr;
  const std::uint64_t limit = std::strtoull(group.limit.c_str(), &end, 10);
  if (end == group.limit.c_str() || limit >= unlimited) return;
  const std::uint64_t used = std::strtoull(group.used.c_str(), nullptr, 10),
                      files = line_value(group.statistics, "inactive_file").value_or(0) +
                              line_value(group.statistics, "active_file").value_or(0);
  take_less(room, difference(limit, difference(used, files)),
            cat("the limit of the control group ", group.path));
}

/// The path of "ID:CONTROLLERS:PATH" of /proc/self/cgroup whose controllers are, or contain, these.
std::string path_of_group(const std::string& groups, std::string_view controllers) {
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string own = cat(",", line.substr(first + 1, second - first - 1), ",");
    if (own.find(cat(",", controllers, ",")) != std::string::npos) return line.substr(second + 1);
  }
  return "/";
}

/// The groups from the process's own to the root. In a container the path may be one that only the
/// host sees; the root is then the group of the container.
void read_groups(std::string path, const std::string& root, const std::string& limit,
                 const std::string& used, std::vector<GroupReading>& groups) {
  if (path.find("..") != std::string::npos) path = "/";
  for (;;) {
    const std::string folder = path == "/" ? root : root + path;
    GroupReading group{folder, read_proc_file(cat(folder, "/", limit)), "", ""};
    if (!group.limit.empty()) {
      group.used = read_proc_file(cat(folder, "/", used));
      group.statistics = read_proc_file(folder + "/memory.stat");
      groups.push_back(std::move(group));
    }
    if (path == "/" || path.empty()) return;
    path = path.substr(0, path.rfind('/'));
    if (path.empty()) path = "/";
  }
}

std::uint64_t soft_limit(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return no_memory_limit;
  return limit.rlim_cur;
}

}  // namespace

MemoryReadings read_memory() {
  MemoryReadings readings{.meminfo = read_proc_file("/proc/meminfo"),
                          .status = read_proc_file("/proc/self/status"),
                          .groups = {},
                          .address_space = soft_limit(RLIMIT_AS),
                          .data = soft_limit(RLIMIT_DATA)};
  const std::string groups = read_proc_file("/proc/self/cgroup");
  read_groups(path_of_group(groups, ""), "/sys/fs/cgroup", "memory.max", "memory.current",
              readings.groups);
  read_groups(path_of_group(groups, "memory"), "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
              "memory.usage_in_bytes", readings.groups);
  return readings;
}

const MemoryRoom& AvailableMemory::least() const {
  if (!process.known()) return machine;
  return machine.known() && machine.bytes <= process.bytes ? machine : process;
}

AvailableMemory available_memory(const MemoryReadings& readings) {
  AvailableMemory out;
  if (const auto free = kibibytes(readings.meminfo, "MemAvailable:"))
    out.machine = {*free, "MemAvailable of /proc/meminfo"};
  for (const GroupReading& group : readings.groups) add_group(group, out.machine);
  const auto add_limit = [&](std::uint64_t limit, std::string_view used, const char* name) {
    if (limit == no_memory_limit) return;
    take_less(out.process, difference(limit, kibibytes(readings.status, used).value_or(0)), name);
  };
  add_limit(readings.address_space, "VmSize:", "the limit of the address space (ulimit -v)");
  add_limit(readings.data, "VmData:", "the limit of the data segment (ulimit -d)");
  return out;
}

std::uint64_t memory_available() {
  const AvailableMemory available = available_memory(read_memory());
  const MemoryRoom& least = available.least();
  return least.known() ? std::max<std::uint64_t>(1, least.bytes) : 0;
}

std::uint64_t peak_resident_memory() {
  return kibibytes(read_proc_file("/proc/self/status"), "VmHWM:").value_or(0);
}

}  // namespace troupe
