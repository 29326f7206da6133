#include "engine/base/processes/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "engine/base/files/environment_error.h"

namespace troupe {

using std::chrono::milliseconds, std::chrono::steady_clock;

Result<Pipe> new_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(os_error(errno, "cannot make a pipe"));
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

std::vector<bool> wait_readable(std::span<const int> descriptors,
                                steady_clock::time_point deadline) {
  std::vector<pollfd> watched;
  for (const int descriptor : descriptors) watched.push_back({descriptor, POLLIN, 0});
  for (;;) {
    int wait_ms = -1;
    if (deadline != steady_clock::time_point::max()) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
      wait_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
    }
    if (::poll(watched.data(), watched.size(), wait_ms) >= 0 || errno != EINTR) break;
  }
  std::vector<bool> readable;
  for (const pollfd& each : watched) readable.push_back(each.revents != 0);
  return readable;
}

bool wait_readable(int descriptor, milliseconds time) {
  return wait_readable({&descriptor, 1}, steady_clock::now() + time)[0];
}

}  // namespace troupe
