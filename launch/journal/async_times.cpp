#include "launch/journal/async_times.h"

#include <algorithm>
#include <utility>

namespace troupe::launch::journal {

void AsyncTimes::begin(std::int64_t now) {
  *this = {};
  at_ = now;
}

void AsyncTimes::changed(const algorithms::Overlap& state, std::int64_t now) {
  spend(now);
  state_ = state;
}

// Counts the time since the last change or step.
void AsyncTimes::spend(std::int64_t now) {
  const double seconds = static_cast<double>(now - std::exchange(at_, now)) * 1e-9;
  if (!state_) return;
  const double idle_share = static_cast<double>(state_->idle_rollouts) /
                            static_cast<double>(std::max<std::int64_t>(1, state_->rollouts));
  const double rollout = seconds * idle_share, policy = state_->policy_waits ? seconds : 0;
  all_ += seconds;
  queue_ += seconds * static_cast<double>(state_->queue);
  in_flight_ += seconds * static_cast<double>(state_->in_flight);
  waiting_ += state_->waiting_for_weights ? seconds : 0;
  rollout_ += rollout;
  policy_ += policy;
  if (!state_->steady) return;
  idle_.all += seconds;
  idle_.rollout += rollout;
  idle_.policy += policy;
}

algorithms::Metrics AsyncTimes::end(std::int64_t now) {
  spend(now);
  if (!state_) return {};
  const double all = std::max(1e-9, std::exchange(all_, 0));
  return {{"async/queue", std::exchange(queue_, 0) / all},
          {"async/in_flight", std::exchange(in_flight_, 0) / all},
          {"async/waiting_for_weights", std::exchange(waiting_, 0)},
          {"timing/idle/rollout", std::exchange(rollout_, 0)},
          {"timing/idle/policy", std::exchange(policy_, 0)}};
}

}  // namespace troupe::launch::journal
