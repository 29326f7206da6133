// OutputFile: a new file that is written incrementally, made durable, and removed if it is not
// finished.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"

namespace troupe::engine::checkpoint {

/// Errc::io: "PATH: cannot VERB: REASON of `code`".
tl::unexpected<Error> system_error(const std::string& path, std::string_view verb,
                                   int code = errno);

class OutputFile {
 public:
  /// Errc::io; existing files are never overwritten.
  static Result<OutputFile> create(const std::string& path);
  /// Opens a file that another process is writing, to write a part of it. Never removes it.
  /// Errc::io.
  static Result<OutputFile> join(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  ~OutputFile();  ///< removes a created file unless finish() succeeded

  const std::string& path() const { return path_; }
  Result<> write(std::span<const std::byte> bytes);
  Result<> write(std::string_view text);
  /// Writes at an offset, and leaves the position of write() as it is.
  Result<> write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Calls fsync and close. The name itself is durable after sync_directory of the folder.
  Result<> finish();

 private:
  OutputFile(std::string path, int fd, bool created)
      : path_(std::move(path)), fd_(fd), created_(created) {}
  void remove_created() const;
  std::string path_;
  int fd_ = -1;
  bool created_ = true;  ///< by this process
};

/// Writes a new file durably (except for its name, see OutputFile::finish).
Result<> write_new_file(const std::string& path, std::string_view content);

/// Creates a directory and its parents. Their names are made durable: a power failure would
/// otherwise lose what was written to them. Errc::io.
Result<> create_directory_durably(const std::string& directory);

}  // namespace troupe::engine::checkpoint
