// IdleConnections: the connections without a complete request, of which one gives way when a server
// has as many as it may have.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace troupe::launch::serve::http {

/// Every function may be called from any thread.
class IdleConnections {
 public:
  using Ticket = std::uint64_t;

  /// The connection waits from now on. `close` is called at most once, if it is chosen; it must not
  /// wait.
  Ticket add(std::function<void()> close);
  /// False if the connection has been chosen: it must not begin a request.
  bool remove(Ticket ticket);
  /// Chooses the connection that has waited longest. False if there is none. What it waits for does
  /// not matter: a new connection, whose request is on its way, would otherwise be chosen before
  /// old ones that have sent a part of theirs.
  bool close_longest();

 private:
  std::mutex mutex_;
  Ticket next_ = 0;
  std::map<Ticket, std::function<void()>> waiting_;
};

}  // namespace troupe::launch::serve::http
