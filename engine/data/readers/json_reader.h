// JSON files that hold their rows in a list: an array, or an object with one list of objects (any
// key). The list is never parsed as a whole: a scan finds where each row begins and ends, then rows
// are parsed one by one, so a malformed row is one row's matter.
#pragma once

#include "engine/data/readers/row_reader.h"
#include "engine/data/readers/whole_text.h"

namespace troupe::engine::data {

/// Where a row stands in the text.
struct RowSpan {
  std::size_t begin = 0, end = 0;
  std::int64_t line = 0;  ///< 1-based
};

/// The rows of the list in `text`. An object without such a list is one row; nullopt: the text is
/// JSON lines. Errc::corrupt (path and line): the brackets do not close, or something stands where
/// a row or a comma should.
Result<std::optional<std::vector<RowSpan>>> find_rows(std::string_view text,
                                                      const std::string& path);

class JsonReader : public RowReader {
 public:
  JsonReader(std::string path, WholeText file, std::vector<RowSpan> rows);
  Result<std::optional<Row>> next() override;
  Result<> seek(std::int64_t index) override;

 private:
  std::string path_;
  WholeText file_;
  std::vector<RowSpan> rows_;
  std::size_t at_ = 0;
};

}  // namespace troupe::engine::data
