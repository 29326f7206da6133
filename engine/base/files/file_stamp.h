// FileStamp: what the file system says of a file. Equal stamps mean equal content, unless a program
// hides a change on purpose; different stamps mean nothing (a copy, a touched file).
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/errors/error.h"

namespace troupe {

struct FileStamp {
  std::uint64_t device = 0, inode = 0, bytes = 0;
  std::int64_t modified = 0, changed = 0;  ///< mtime and ctime, in nanoseconds since 1970
  bool operator==(const FileStamp&) const = default;
};

/// The stamp of a file; follows links. Errc::not_found, io.
Result<FileStamp> stamp_of(const std::string& path);

}  // namespace troupe
