// OutputFile: a new file that is written incrementally, made durable, and removed if it is not
// finished.
#pragma once

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace troupe::engine::checkpoint {

/// Errc::io: "PATH: cannot VERB: REASON of `code`".
tl::unexpected<Error> system_error(const std::string& path, std::string_view verb,
                                   int code = errno);

class OutputFile {
 public:
  /// Errc::io; existing files are never overwritten.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  ~OutputFile();  ///< removes the file unless finish() succeeded

  const std::string& path() const { return path_; }
  Result<> write(std::span<const std::byte> bytes);
  Result<> write(std::string_view text);
  /// Calls fsync and close. The name itself is durable after sync_directory of the folder.
  Result<> finish();

 private:
  OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_ = -1;
};

/// Writes a new file durably (except for its name, see OutputFile::finish).
Result<> write_new_file(const std::string& path, std::string_view content);

}  // namespace troupe::engine::checkpoint
