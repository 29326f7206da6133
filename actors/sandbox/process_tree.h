// Process trees of this host, and temporary folders for processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace troupe::actors::sandbox {

/// Snapshot of the running processes of this host.
class ProcessSnapshot {
 public:
  ProcessSnapshot();
  /// Resident bytes of a process, its descendants and its process group; shared pages count for
  /// each.
  std::uint64_t memory(pid_t root) const;
  bool has_process_group(pid_t group) const;

 private:
  struct Entry {
    pid_t id = 0, parent = 0, group = 0;
    std::uint64_t pages = 0;
  };
  std::vector<Entry> processes_;
};

/// Number of processes and threads of `user` on this host.
int tasks_of(unsigned user);

inline constexpr std::string_view temp_folder_prefix = "troupe-reward-";
/// Creates an empty folder in the system's temporary folder, owned by `user` when called as root.
/// Its name is temp_folder_prefix, the process id and six random letters: a later run removes it if
/// this process is killed. Errc::io.
Result<std::string> make_temp_folder(unsigned user);

}  // namespace troupe::actors::sandbox
