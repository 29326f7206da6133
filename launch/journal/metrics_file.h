// metrics.jsonl: one JSON object per step, with full precision and complete lines only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/training/journal.h"
#include "engine/base/errors/error.h"
#include "engine/base/files/output_folder.h"
#include "engine/base/files/system_calls.h"
#include "engine/base/json/json.h"
#include "engine/checkpoint/running_checksum.h"

namespace troupe::launch::journal {

/// An append-only file of lines. Each line is one write to the operating system, so a killed
/// process leaves no partial line.
class LineFile {
 public:
  /// Appends to FOLDER/NAME, which is created if it is missing. Errc::io.
  static Result<LineFile> open(const OutputFolder& folder, const std::string& name,
                               OnFullDisk full = OnFullDisk::fail);
  /// Appends `text`, which ends with a newline. Errc::io.
  Result<> append(std::string_view text);
  /// fdatasync: the appended lines survive a power failure, if the name of the file does
  /// (OutputFolder::sync). Errc::io.
  Result<> sync();

 private:
  LineFile(Descriptor file, std::string path, OnFullDisk full)
      : file_(std::move(file)), path_(std::move(path)), full_(full) {}
  Descriptor file_;
  std::string path_;
  OnFullDisk full_;
};

/// {"step":3,"loss":2.5,...}; non-finite values become null.
std::string metrics_line(std::int64_t step, const algorithms::Metrics& metrics);

/// What truncate_after() found.
struct KeptLines {
  std::vector<std::int64_t> steps;          ///< of each line that stays, ascending
  std::size_t damaged_bytes = 0;            ///< of what is no complete line
  std::size_t zero_bytes = 0;               ///< of these: a power failure may leave zeros
  engine::checkpoint::RunningChecksum sum;  ///< of the lines that stay
};

/// Removes the lines of a JSON-lines file whose "step" is above `step`, incomplete lines, lines out
/// of order and, with `once`, repeated steps. Does nothing if the file is missing. Called when a
/// run resumes from the checkpoint of `step`. Errc::io. Reads the file once.
Result<KeptLines> truncate_after(const OutputFolder& folder, const std::string& name,
                                 std::int64_t step, bool once);

/// Calls `visit` with each well-formed object of a JSON-lines file; skips other lines. Does nothing
/// if the file is missing.
void for_each_line(const std::string& path,
                   const std::function<void(const Json&, std::string_view)>& visit);

}  // namespace troupe::launch::journal
