// JSON lines: one value a line. Blank lines are not rows; CRLF and a byte order mark at the start are accepted.
#pragma once

#include "engine/base/file.h"
#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

class JsonlReader : public RowReader {
 public:
  JsonlReader(std::string path, MappedFile file);
  Result<std::optional<Row>> next() override;
  Result<> seek(std::int64_t index) override;

 private:
  bool take_line(std::string_view& line);  // the next line that is not blank, without its end; false at the end

  std::string path_;
  MappedFile file_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 0;   // of the line before at_
  std::int64_t index_ = 0;  // of the next row
};

/// The text of `row` (whose place is filled in already) becomes its value, an object. Errc::bad_input with the file's own line.
Result<> parse_row(std::string_view text, Row& row);

/// The bytes of a file as text, without a byte order mark.
std::string_view text_of(const MappedFile& file);

}  // namespace troupe::engine::data
