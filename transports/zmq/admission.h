// Admission: which connections a hub accepts. ZeroMQ has no limit, so a hub makes its unix sockets
// unreachable: connecting to a path that does not exist fails at once, costs the hub nothing, and
// peers of the run try again. TCP endpoints have no limit.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace troupe::transports {

class Admission {
 public:
  /// `max_connections`: of all endpoints at a time, and new ones in one period. `endpoints` are
  /// bound; those that are not ipc:// are ignored.
  Admission(std::size_t max_connections, const std::vector<std::string>& endpoints);
  Admission(const Admission&) = delete;

  void accepted(int fd);
  void ended(int fd) { open_.erase(fd); }
  /// Begins a period: accepts again if fewer connections are open.
  void next_period();
  /// All peers are connected: no further connection is accepted until reopen(). Idempotent.
  void finish();
  /// A peer is expected again.
  void reopen();
  /// The endpoints are closed: removes their paths.
  void remove();
  bool accepts() const { return state_ == State::listening; }
  bool finished() const { return state_ == State::finished; }

 private:
  enum class State { listening, paused, finished };
  void rename_all(const char* from, const char* to) const;

  const std::size_t max_connections_;
  std::vector<std::string> paths_;
  State state_ = State::listening;
  std::set<int> open_;
  std::size_t accepted_ = 0;  // in this period
};

}  // namespace troupe::transports
