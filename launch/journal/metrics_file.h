// metrics.jsonl: one JSON object per step, with full precision and complete lines only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "algorithms/journal.h"
#include "engine/base/error.h"
#include "engine/base/json.h"

namespace troupe::launch {

/// An append-only file of lines. Each line is one write to the operating system, so a killed
/// process leaves no partial line.
class LineFile {
 public:
  static Result<LineFile> open(const std::string& path);
  LineFile(LineFile&& other) noexcept;
  LineFile& operator=(LineFile&& other) noexcept;
  ~LineFile();
  /// Appends `text`, which ends with a newline. Errc::io.
  Result<> append(std::string_view text);

 private:
  LineFile(int file, std::string path) : file_(file), path_(std::move(path)) {}
  int file_ = -1;
  std::string path_;
};

/// {"step":3,"loss":2.5,...}; non-finite values become null.
std::string metrics_line(std::int64_t step, const algorithms::Metrics& metrics);

/// Removes the lines of a JSON-lines file whose "step" is above `step`, incomplete lines, lines out
/// of order and, with `once`, repeated steps. Does nothing if the file is missing. Called when a
/// run resumes from the checkpoint of `step`. Errc::io.
Result<> truncate_after(const std::string& path, std::int64_t step, bool once);

/// Calls `visit` with each well-formed object of a JSON-lines file; skips other lines. Does nothing
/// if the file is missing.
void for_each_line(const std::string& path,
                   const std::function<void(const Json&, std::string_view)>& visit);

}  // namespace troupe::launch
