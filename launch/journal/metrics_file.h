// metrics.jsonl: one JSON object a step, every digit that the numbers have, whole lines only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "algorithms/journal.h"
#include "engine/base/error.h"
#include "engine/base/json.h"

namespace troupe::launch {

/// A file that only grows, by whole lines: each goes to the operating system in one write, so a
/// killed process leaves no half line behind.
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

/// {"step":3,"loss":2.5,...}; what is not a finite number becomes null.
std::string metrics_line(std::int64_t step, const algorithms::Metrics& metrics);

/// Keeps the lines of a JSON-lines file whose "step" is at most `step`: whole lines, in order, and
/// with `once` each step once. A missing file stays missing. Used when a run goes on from the
/// checkpoint of `step`. Errc::io.
Result<> cut_back(const std::string& path, std::int64_t step, bool once);

/// Calls `visit` with each well-formed object of a JSON-lines file, skipping others. Nothing
/// happens when there is no such file.
void for_each_line(const std::string& path,
                   const std::function<void(const Json&, std::string_view)>& visit);

}  // namespace troupe::launch
