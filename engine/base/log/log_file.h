// LogFile: the log of a run in its output directory, of bounded size.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/files/output_folder.h"

namespace troupe {

class LogFile {
 public:
  static constexpr std::size_t default_bytes = std::size_t{8} << 20;
  /// Appends to FOLDER/NAME. Before the file exceeds `max_bytes`, it is renamed to NAME.1, which
  /// replaces an earlier one. Errc::io.
  static Result<LogFile> open(OutputFolder folder, std::string name,
                              std::size_t max_bytes = default_bytes);
  /// Appends one line, which ends with a newline. Errors are ignored: a log must not end a run.
  void write(std::string_view line);

 private:
  LogFile(OutputFolder folder, std::string name, std::size_t max_bytes)
      : folder_(std::move(folder)), name_(std::move(name)), max_bytes_(max_bytes) {}
  Result<> reopen();

  OutputFolder folder_;
  std::string name_;
  std::size_t max_bytes_, bytes_ = 0;
  Descriptor file_;
};

/// A time in UTC, from seconds since 1970: "2026-11-24T22:01:54.123Z" (ISO 8601).
std::string utc_text(double seconds);
/// The present time as utc_text.
std::string utc_time();

}  // namespace troupe
