// RowSource: the rows of all input files, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/loader/dataset.h"
#include "engine/data/loader/example_reader.h"
#include "engine/data/readers/row_reader.h"

namespace troupe::launch::tools::preprocess {

class RowSource {
 public:
  /// `input`: files, folders or patterns. `max_rows` 0: all. Errors of list_data_files and of the
  /// files.
  static Result<RowSource> open(const std::vector<std::string>& input, std::int64_t max_rows,
                                const engine::data::ReadOptions& reading);

  /// The next row; nullopt at the end. Errors of RowReader::next_pending and of the files.
  Result<std::optional<engine::data::PendingRow>> next();
  /// The row that next() reads: file, row of the file, and rows before it.
  engine::data::RowPosition position() const { return position_; }
  Result<> seek(engine::data::RowPosition position);
  const std::vector<engine::data::FileFingerprint>& files() const { return files_; }
  /// Bytes of all files, and of those that are read already.
  std::uint64_t bytes() const;
  std::uint64_t bytes_of_finished() const;

 private:
  std::vector<engine::data::FileFingerprint> files_;
  std::int64_t max_rows_ = 0;
  engine::data::ReadOptions reading_;
  engine::data::RowPosition position_;
  std::unique_ptr<engine::data::RowReader> reader_;  // of file position_.file; null: not open
};

}  // namespace troupe::launch::tools::preprocess
