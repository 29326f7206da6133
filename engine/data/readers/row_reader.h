// RowReader: the port through which every data file is read, one JSON value a row. Formats: jsonl, json, parquet.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"

namespace troupe::engine::data {

/// One row, and where it stands, for messages and exact resumption.
struct Row {
  Json value;
  std::string file;
  std::int64_t line = 0;   ///< 1-based line of the file; in parquet the 1-based row
  std::int64_t index = 0;  ///< 0-based row of the file, malformed rows counted too: what seek() takes
  /// "data.jsonl:17" or "train.parquet: row 3".
  std::string where() const {
    // Inline, because the parquet library uses it too and links nothing of this folder.
    const bool parquet = file.ends_with(".parquet");
    return file + (parquet ? ": row " : ":") + std::to_string(line);
  }
};

class RowReader {
 public:
  virtual ~RowReader() = default;
  /// The next row, or nullopt at the end. A malformed row is Errc::bad_input, naming file and line, and the call after it goes on with the
  /// row after it. Any other error (Errc::corrupt, io) is final: the file cannot be read further.
  virtual Result<std::optional<Row>> next() = 0;
  /// The next call of next() answers row `index` (or the end, when the file has no more rows).
  virtual Result<> seek(std::int64_t index) = 0;
};

/// Bounds of one row, from any format.
constexpr std::size_t max_row_bytes = 8u << 20;
constexpr std::size_t max_row_depth = 32;

/// Opens a file by its content and extension: .jsonl and .ndjson (a value a line), .json (an array, an object with a list of rows, or lines
/// after all), .parquet. Errc::not_found, io, unsupported (another format, or the parquet reader is not there: says what to do).
Result<std::unique_ptr<RowReader>> open_rows(const std::string& path);

/// A file stands for itself; a folder for the data files in it (not below it), by name. Errc::not_found, also for a folder without any.
Result<std::vector<std::string>> list_data_files(const std::vector<std::string>& paths);

}  // namespace troupe::engine::data
