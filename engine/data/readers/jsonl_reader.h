// JSON lines: one value per line. Blank lines are not rows; CRLF and a byte order mark at the start
// are accepted.
#pragma once

#include "engine/data/readers/lines.h"
#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

class JsonlReader : public RowReader {
 public:
  JsonlReader(std::string path, TextStream stream)
      : path_(std::move(path)), lines_(std::move(stream)) {}
  Result<std::optional<Row>> next() override;
  Result<> seek(std::int64_t index) override;

 private:
  Result<std::optional<Lines::Line>> next_line();  // skips blank lines

  std::string path_;
  Lines lines_;
  std::int64_t index_ = 0;  // index of the next row
};

/// Parses `text`, an object, into `row`, whose position is set already. Errc::bad_input with the
/// line number of the file.
Result<> parse_row(std::string_view text, Row& row);

/// Errc::bad_input if `bytes` exceeds max_row_bytes.
Result<> check_row_size(std::size_t bytes, const Row& row);

}  // namespace troupe::engine::data
