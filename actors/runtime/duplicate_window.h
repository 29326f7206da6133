// DuplicateWindow: recognizes requests that a transport delivers again.
#pragma once

#include <cstdint>
#include <set>

namespace troupe::actors {

/// Detects repeated requests of one sender. A sender's ids increase, but a transport may repeat or
/// reorder frames.
class DuplicateWindow {
 public:
  /// True for a new id. An id older than the last 4096 counts as seen: handling a request twice is
  /// worse than losing it.
  bool first(std::uint64_t id) {
    if (id <= floor_ || !seen_.insert(id).second) return false;
    if (seen_.size() > 4096) {
      floor_ = *seen_.begin();
      seen_.erase(seen_.begin());
    }
    return true;
  }

 private:
  std::uint64_t floor_ = 0;  // ids up to this one are no longer stored
  std::set<std::uint64_t> seen_;
};

}  // namespace troupe::actors
