// What the host says of processes and of all that they started, and the folder that one gets.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace troupe::actors::sandbox {

/// All processes of this host that have not ended, at one moment.
class Census {
 public:
  Census();
  /// Bytes of memory that a process, its descendants and its group hold; shared pages are counted
  /// for each.
  std::uint64_t memory(pid_t root) const;
  bool has_group(pid_t group) const;

 private:
  struct One {
    pid_t id = 0, parent = 0, group = 0;
    std::uint64_t pages = 0;
  };
  std::vector<One> all_;
};

/// Processes and threads of this host that run as `user`.
int tasks_of(unsigned user);

/// A new empty folder below the system's temporary folder; it belongs to `user` where we are root.
/// Errc::io.
Result<std::string> new_folder(unsigned user);

}  // namespace troupe::actors::sandbox
