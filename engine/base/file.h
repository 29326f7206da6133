// Files: bounded reads, read-only maps, and writes that are either whole and durable or not there.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace troupe {

/// The whole of a regular file, at most `limit` bytes. Errc::not_found, Errc::io (a directory, a
/// device, not readable), Errc::bad_input (too large).
Result<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{1} << 32);

/// What can be read of a file that does not tell its size, as those of /proc and /sys; "" where
/// there is none. A process may end between the opening and the reading: what was read until then
/// is returned. At most 16 MiB.
std::string kernel_text(const std::string& path);

/// Writes `path` through a temporary file beside it: write, fsync, rename, fsync of the folder.
/// After a crash the old content or the new is there, never a mixture. Errc::io.
Result<> write_file_durably(const std::string& path, std::string_view content);

/// fsync of a folder, so that renames and new entries in it survive a power cut.
Result<> sync_directory(const std::string& path);

/// A read-only map of a regular file. Moves, unmaps itself. Where the file is shortened meanwhile,
/// see lost_pages.h.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  MappedFile(std::span<const std::byte> bytes, int place) : bytes_(bytes), place_(place) {}
  std::span<const std::byte> bytes_;
  int place_;  // remember_mapping()
};

}  // namespace troupe
