// IdleConnections: the connections without a complete request, of which one gives way when a server
// has as many as it may have.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace troupe::launch::http {

/// Every function may be called from any thread.
class IdleConnections {
 public:
  /// What a connection waits for, in the order in which connections give way: those that have never
  /// had a request come first, then those between two requests, then those whose body arrives.
  enum class Kind { first_request, next_request, body };
  using Ticket = std::pair<Kind, std::uint64_t>;

  /// `close` is called at most once, if the connection is chosen; it must not wait.
  Ticket add(Kind kind, std::function<void()> close);
  /// False if the connection has been chosen: it must not begin a request.
  bool remove(Ticket ticket);
  /// Chooses the connection that has waited longest among the first kind that there is. False if
  /// there is none.
  bool close_longest();

 private:
  std::mutex mutex_;
  std::uint64_t next_ = 0;
  std::map<Ticket, std::function<void()>> waiting_;
};

}  // namespace troupe::launch::http
