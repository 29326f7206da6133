// Landlock: restricts files, ports and signals of a process and its children without namespaces.
#pragma once

#include <string>

namespace troupe::actors::sandbox {

/// Version of Landlock's interface in this kernel; 0 where it is missing or switched off.
/// docs/security.md has a table of what each version restricts.
int landlock_version();

/// What a restricted process may use.
struct FileAccess {
  std::string folder;  ///< the only place where it can create, write and delete files
  bool network = false;
  bool zero_device = false;  ///< whether it may open /dev/zero, whose mappings hold memory
};

/// Restricts the calling process, which has set no-new-privileges. It can read the files of every
/// top-level directory but /dev, write only in its folder and to /dev/null, and (version 4) connect
/// to no port, (version 6) neither send signals nor connect to abstract sockets of other processes.
/// Does nothing where Landlock is missing. Returns false and sets errno on errors.
bool restrict_with_landlock(const FileAccess& access);

}  // namespace troupe::actors::sandbox
