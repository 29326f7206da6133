// RestartBudget: how many processes of a role are replaced within a time, as the supervisors of
// Erlang/OTP limit it (intensity and period).
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>

#include "launch/recipes/role.h"

namespace troupe::launch::cluster {

class RestartBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;
  RestartBudget(std::size_t restarts, std::chrono::seconds window)
      : restarts_(restarts), window_(window) {}

  /// Counts a restart at `now`, which does not decrease. False if there were `restarts` of the role
  /// in the window before it.
  bool take(recipes::Role role, Time now) {
    std::deque<Time>& times = times_[role];
    while (!times.empty() && now - times.front() > window_) times.pop_front();
    if (times.size() >= restarts_) return false;
    times.push_back(now);
    return true;
  }

 private:
  std::size_t restarts_;
  std::chrono::seconds window_;
  std::map<recipes::Role, std::deque<Time>> times_;
};

}  // namespace troupe::launch::cluster
