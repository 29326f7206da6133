#include "engine/base/files/space_wait.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

struct Waits {
  std::mutex mutex;
  std::chrono::milliseconds longest{0};
  std::function<void(const std::string&)> notify;
  int waiting = 0;
};

Waits& waits() {
  static Waits all;
  return all;
}

std::chrono::milliseconds longest_wait() {
  const std::lock_guard lock(waits().mutex);
  return waits().longest;
}

// Counts one more or one less that waits, and tells the first and the last of them.
void count(int change, const std::string& text) {
  Waits& all = waits();
  std::function<void(const std::string&)> notify;
  {
    const std::lock_guard lock(all.mutex);
    all.waiting += change;
    if (all.waiting == (change > 0 ? 1 : 0)) notify = all.notify;
  }
  if (notify) notify(text);
}

}  // namespace

void wait_for_disk_space(std::chrono::milliseconds longest,
                         std::function<void(const std::string&)> notify) {
  const std::lock_guard lock(waits().mutex);
  waits().longest = longest;
  waits().notify = std::move(notify);
}

bool is_disk_full(int code) {
  return code == ENOSPC || code == EDQUOT;
}

bool SpaceWait::again(int code) {
  const auto longest = longest_wait();
  if (!is_disk_full(code) || longest.count() == 0) return false;
  const auto now = Clock::now();
  if (!waiting_) {
    began_ = now;
    waiting_ = true;
    count(1, cat(path_, ": the disk is full; the run waits up to ",
                 std::chrono::duration<double>(longest).count(),
                 " s (recovery.disk_wait) until there is space"));
  }
  const auto left = began_ + longest - now;
  if (left <= Clock::duration::zero()) return false;
  std::this_thread::sleep_for(std::min<Clock::duration>(left, std::chrono::milliseconds(100)));
  errno = code;
  return true;
}

SpaceWait::~SpaceWait() {
  if (!waiting_) return;
  const std::chrono::duration<double> waited = Clock::now() - began_;
  count(-1, cat(path_, ": waited ", to_text(waited.count(), 1), " s for space on the disk"));
}

}  // namespace troupe
