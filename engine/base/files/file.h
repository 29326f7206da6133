// Files: bounded reads, read-only maps, and atomic durable writes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"

namespace troupe {

/// Reads a whole regular file of at most `limit` bytes. Errc::not_found, Errc::io (a directory, a
/// device, not readable), Errc::bad_input (too large).
Result<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{1} << 32);

/// Reads a file of /proc or /sys, whose size is not known in advance; "" if it does not exist. If
/// the process ends during the read, the bytes read so far are returned. At most 16 MiB.
std::string read_proc_file(const std::string& path);

/// Writes `path` through a temporary file in the same directory: write, fsync, rename, fsync of the
/// directory. After a crash the file has the old content or the new, never a mixture. Errc::io.
Result<> write_file_durably(const std::string& path, std::string_view content);

/// fsync of a directory: renames and new entries in it survive a power failure.
Result<> sync_directory(const std::string& path);

/// A read-only map of a regular file, unmapped by the destructor. mapped_file_faults.h handles
/// files that are truncated while they are mapped.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  MappedFile(std::span<const std::byte> bytes, int slot) : bytes_(bytes), slot_(slot) {}
  std::span<const std::byte> bytes_;
  int slot_;  // register_mapping()
};

}  // namespace troupe
