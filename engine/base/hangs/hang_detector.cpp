#include "engine/base/hangs/hang_detector.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::progress {

using std::chrono::milliseconds;

std::chrono::milliseconds Stillness::look(std::uint64_t progress, Time now) {
  constexpr milliseconds longest_step{2000};
  if (std::exchange(first_, false) || progress != progress_) {
    length_ = milliseconds(0);
  } else {
    length_ += std::min(std::chrono::duration_cast<milliseconds>(now - last_), longest_step);
  }
  progress_ = progress;
  last_ = now;
  return length_;
}

std::string state_of_thread(pid_t process, pid_t thread) {
  std::ifstream file(cat("/proc/", process, "/task/", thread == 0 ? process : thread, "/stat"));
  std::stringstream text;
  text << file.rdbuf();
  const std::string line = text.str();
  const auto end = line.rfind(')');  // of the name, which may contain anything
  if (end == std::string::npos || end + 2 >= line.size()) return "";
  switch (line[end + 2]) {
    case 'T':
      return "stopped by SIGSTOP";
    case 't':
      return "stopped by a debugger";
    case 'D':
      return "waiting for the kernel";
    default:
      return "";
  }
}

std::string describe(const Hang& hang) {
  const std::string state = state_of_thread(::getpid(), hang.thread);
  return cat(hang.name, " (thread ", hang.thread, state.empty() ? "" : ", ", state, ") has",
             hang_words, hang.length.count() / 1000, " s",
             hang.operation.empty() ? " and has not begun its next job" : " in ", hang.operation,
             hang.waits ? ", where it waits for its engine threads" : "");
}

std::string key_of(const Hang& hang) {
  return cat("thread ", hang.thread);
}

namespace {

// A thread of a pool is named after the one that waits for it.
Hang hang_of(const ThreadLook& look, std::span<const ThreadLook> threads, milliseconds length) {
  Hang hang{look.name, look.thread, look.operation, look.waits_for != nullptr, length};
  for (const ThreadLook& other : threads) {
    if (look.pool == nullptr || other.waits_for != look.pool) continue;
    hang.name = cat(look.name, " of ", other.name);
    hang.operation = other.operation;
  }
  return hang;
}

}  // namespace

HangDetector::Found HangDetector::look(std::span<const ThreadLook> threads, Stillness::Time now) {
  Found found;
  std::set<std::uint64_t> seen;
  std::set<const void*> hanging_pools;
  for (const ThreadLook& look : threads) {
    seen.insert(look.id);
    Watched& watched = watched_[look.id];
    if (!look.works) watched.stillness = {};
    const auto length = watched.stillness.look(look.finished, now);
    if (look.pool != nullptr && length >= limit_) hanging_pools.insert(look.pool);
    if (look.pool == nullptr) found.longest = std::max(found.longest, length);
  }
  for (const ThreadLook& look : threads) {
    Watched& watched = watched_[look.id];
    const auto length = watched.stillness.length();
    // A loop ends when all its items have: its caller hangs because another thread does.
    const bool hangs = length >= limit_ && !hanging_pools.contains(look.waits_for);
    if (hangs) {
      watched.hang = hang_of(look, threads, length);
      found.present.push_back(watched.hang);
    }
    if (hangs && !watched.reported) found.began.push_back(watched.hang);
    if (!hangs && watched.reported) found.ended.push_back(watched.hang);
    watched.reported = hangs;
  }
  std::erase_if(watched_, [&](const auto& each) {
    if (seen.contains(each.first)) return false;
    if (each.second.reported) found.ended.push_back(each.second.hang);
    return true;
  });
  std::ranges::sort(found.present, std::greater(), &Hang::length);
  return found;
}

}  // namespace troupe::progress
