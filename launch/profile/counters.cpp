#include "launch/profile/counters.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "engine/base/text/text.h"

namespace troupe::launch::profile {
namespace {

constexpr std::uint64_t events[] = {PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES,
                                    PERF_COUNT_HW_CACHE_MISSES};
constexpr std::size_t max_threads = 1024;

int open_event(std::uint64_t event, int thread, int group) {
  perf_event_attr wanted{};
  wanted.type = PERF_TYPE_HARDWARE;
  wanted.size = sizeof(wanted);
  wanted.config = event;
  wanted.read_format = PERF_FORMAT_GROUP;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &wanted, thread, -1, group, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

Result<> Counters::add(int thread) {
  int group = -1;
  for (const std::uint64_t event : events) {
    const int file = open_event(event, thread, group);
    if (file < 0 && errno == ESRCH) return {};  // the thread has ended
    if (file < 0)
      return fail(
          Errc::unsupported,
          cat("hardware counters are not available (perf_event_open: ", std::strerror(errno), ")"));
    if (group < 0) {
      group = file;
      groups_.push_back(group);
    }
    files_.push_back(file);
  }
  return {};
}

Result<std::unique_ptr<Counters>> Counters::open() {
  std::unique_ptr<Counters> made(new Counters);
  std::error_code failed;
  std::size_t threads = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", failed)) {
    const std::string name = entry.path().filename().string();
    int thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec != std::errc() ||
        ++threads > max_threads)
      continue;
    RETURN_IF_ERROR(made->add(thread));
  }
  if (made->groups_.empty()) return fail(Errc::unsupported, "/proc/self/task lists no threads");
  return made;
}

Counters::~Counters() {
  for (const int file : files_) ::close(file);
}

Counts Counters::read() const {
  Counts all;
  for (const int group : groups_) {
    std::uint64_t values[1 + std::size(events)] = {};  // the number of values, then the values
    if (::read(group, values, sizeof(values)) != sizeof(values)) continue;
    all += {static_cast<std::int64_t>(values[1]), static_cast<std::int64_t>(values[2]),
            static_cast<std::int64_t>(values[3])};
  }
  return all;
}

}  // namespace troupe::launch::profile
