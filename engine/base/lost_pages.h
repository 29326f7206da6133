// A page of a mapped file that is gone: somebody shortened the file, or the disk failed. The
// kernel's answer is SIGBUS, without words.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace troupe {

/// From now on the process ends there with `exit_code` and a sentence on stderr that names the
/// file. Other causes of SIGBUS stay deadly.
void exit_on_lost_pages(int exit_code);

/// Which file is mapped where, until its place is given back. -1 when there are too many to tell
/// apart: those lose their names.
int remember_mapping(std::span<const std::byte> bytes, const std::string& path);
void forget_mapping(int place);

}  // namespace troupe
