// JSON files that hold their rows in a list: an array, or an object with one list of objects (any
// key). The list is never parsed as a whole: a scan finds where each row begins and ends, then rows
// are parsed one by one, so a malformed row does not affect the others.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/files/file.h"
#include "engine/data/readers/line_readers.h"

namespace troupe::engine::data {

/// A whole text file: a mapping of it, or its decompressed content.
class WholeText {
 public:
  /// Errc::not_found, io, corrupt; Errc::unsupported: compressed, and more than 64 MiB inside.
  static Result<WholeText> open(const std::string& path);
  /// The text without a byte order mark.
  std::string_view text() const;
  /// The bytes of the file, possibly compressed.
  std::string_view bytes() const;

 private:
  explicit WholeText(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  std::string unpacked_;
};

/// Position of a row in the text.
struct RowSpan {
  std::size_t begin = 0, end = 0;
  std::int64_t line = 0;  ///< 1-based
};

/// Returns the rows of the list in `text`. An object without such a list is one row; nullopt: the
/// text is JSON lines. Errc::corrupt (path and line) for unbalanced brackets, and for anything but
/// a row or a comma between rows.
Result<std::optional<std::vector<RowSpan>>> find_rows(std::string_view text,
                                                      const std::string& path);

class JsonReader : public JsonRowReader {
 public:
  JsonReader(std::string path, WholeText file, std::vector<RowSpan> rows);
  Result<std::optional<PendingRow>> next_pending() override;
  Result<> seek(std::int64_t index) override;

 private:
  std::string path_;
  WholeText file_;
  std::vector<RowSpan> rows_;
  std::size_t at_ = 0;
  bool share_lines_ = false;  ///< a line has several rows, so their numbers are given
};

}  // namespace troupe::engine::data
