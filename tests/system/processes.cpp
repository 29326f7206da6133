#include "tests/system/processes.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"

namespace troupe::test {
namespace {

// The fourth field of /proc/PID/stat; the second, in parentheses, may contain any character.
pid_t parent_of(const std::string& pid) {
  const std::string stat = read_proc_file("/proc/" + pid + "/stat");
  const auto name_end = stat.rfind(')');
  return name_end == std::string::npos
             ? 0
             : static_cast<pid_t>(std::strtol(stat.c_str() + name_end + 4, nullptr, 10));
}

}  // namespace

std::vector<Process> processes_with(const std::string& mark) {
  std::vector<Process> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string environment = '\0' + read_proc_file("/proc/" + name + "/environ");
    if (environment.find('\0' + mark + '\0') == std::string::npos) continue;
    std::string command = read_proc_file("/proc/" + name + "/cmdline");
    std::ranges::replace(command, '\0', ' ');
    const auto pid = static_cast<pid_t>(std::stol(name));
    if (pid != getpid()) found.push_back({pid, parent_of(name), command});
  }
  return found;
}

}  // namespace troupe::test
