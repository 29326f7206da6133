#include "launch/serve/http/idle_connections.h"

#include <utility>

namespace troupe::launch::serve::http {

IdleConnections::Ticket IdleConnections::add(std::function<void()> close) {
  const std::lock_guard lock(mutex_);
  const Ticket ticket = next_++;
  waiting_.emplace(ticket, std::move(close));
  return ticket;
}

bool IdleConnections::remove(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  return waiting_.erase(ticket) > 0;
}

bool IdleConnections::close_longest() {
  std::function<void()> close;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return false;
    close = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
  }
  close();
  return true;
}

}  // namespace troupe::launch::serve::http
