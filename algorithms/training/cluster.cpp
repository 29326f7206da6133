#include "algorithms/training/cluster.h"

#include <utility>

namespace troupe::algorithms {

bool take_successor(Cluster& c, RolloutRef& rollout) {
  if (!c.recovery) return true;
  c.recovery->check_open();
  const transports::Address address = rollout.address();
  const std::uint64_t number = c.recovery->incarnation(address.node);
  if (address.incarnation != number) {
    rollout = rollout.of_incarnation(number);
    if (c.stream) c.stream->forget(address);
  }
  return c.recovery->present(address.node);
}

bool is_present(const Cluster& c, const RolloutRef& rollout) {
  const transports::Address& address = rollout.address();
  return !c.recovery || (c.recovery->incarnation(address.node) == address.incarnation &&
                         c.recovery->present(address.node));
}

Task<bool> survives(Cluster& c, const RolloutRef& rollout, Task<void> work) {
  const transports::Address address = rollout.address();
  const bool survived = co_await survives(c.recovery, rollout.asker(), address.node,
                                          address.incarnation, std::move(work));
  co_return survived;
}

}  // namespace troupe::algorithms
