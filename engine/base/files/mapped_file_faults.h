// SIGBUS of a mapped file: another process truncated the file, or the disk failed. The handler
// reports the file before the process ends.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace troupe {

/// Installs a handler for SIGBUS that prints the path of the mapped file to stderr and ends the
/// process with `exit_code`. Other causes of SIGBUS keep the default action.
void install_sigbus_handler(int exit_code);

/// Registers a mapping for the handler and returns its slot, or -1 if all slots are taken: then the
/// handler cannot name the file.
int register_mapping(std::span<const std::byte> bytes, const std::string& path);
void unregister_mapping(int slot);

}  // namespace troupe
