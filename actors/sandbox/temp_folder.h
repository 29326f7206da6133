// Working folders of reward programs under Isolation::limits.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "engine/base/errors/error.h"

namespace troupe::actors::sandbox {

inline constexpr std::string_view temp_folder_prefix = "troupe-reward-";

/// Creates an empty folder in `directory`, owned by `user` when called as root. Its name is
/// temp_folder_prefix, the process id and six random letters: a later run removes it from the
/// system's temporary folder if this process is killed. Errc::io.
Result<std::string> make_temp_folder(const std::string& directory, unsigned user);

/// Removes a folder and all that it contains, however deep: a program can nest folders until no
/// path reaches the innermost. Follows no link. False if something is left.
bool remove_temp_folder(const std::string& path);

/// Removes the folders of a process that has ended from the system's temporary folder.
void remove_temp_folders_of(pid_t process);
/// The same of all processes that have ended, by `may_be_running` (of a process id).
void remove_temp_folders(bool (*may_be_running)(pid_t));

}  // namespace troupe::actors::sandbox
