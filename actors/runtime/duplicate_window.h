// DuplicateWindow: which of one sender's requests were seen. Ids of a sender grow; a transport may
// repeat or reorder them.
#pragma once

#include <cstdint>
#include <set>

namespace troupe::actors {

class DuplicateWindow {
 public:
  /// True the first time. An id older than the last 4096 counts as seen: to handle twice is worse
  /// than to lose.
  bool first(std::uint64_t id) {
    if (id <= floor_ || !seen_.insert(id).second) return false;
    if (seen_.size() > 4096) {
      floor_ = *seen_.begin();
      seen_.erase(seen_.begin());
    }
    return true;
  }

 private:
  std::uint64_t floor_ = 0;  // everything up to here is forgotten
  std::set<std::uint64_t> seen_;
};

}  // namespace troupe::actors
