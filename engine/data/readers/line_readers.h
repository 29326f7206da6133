// Readers of text files by lines: JSON lines and plain text. CRLF and a byte order mark at the
// start are accepted.
#pragma once

#include <optional>

#include "engine/data/readers/row_reader.h"
#include "engine/data/readers/text_stream.h"

namespace troupe::engine::data {

class Lines {
 public:
  struct Line {
    std::string_view text;  ///< without the line end; empty if longer than max_row_bytes
    std::size_t bytes = 0;  ///< size of the whole line
    bool ended = true;      ///< false: the file ends before the line does
  };
  /// `path` is for messages.
  Lines(std::string path, TextStream stream) : path_(std::move(path)), stream_(std::move(stream)) {}
  /// Returns the next line; nullopt at the end. The line is valid until the next call. Errors of
  /// TextStream::peek; Errc::corrupt if a line has no end within max_skipped_bytes.
  Result<std::optional<Line>> next();
  /// Number of the line that next() returned last, counted from 1.
  std::int64_t number() const { return number_; }
  Result<> rewind();

 private:
  Result<Line> long_line(std::size_t searched);
  std::string path_;
  TextStream stream_;
  std::size_t pending_ = 0;  // bytes of the last line, skipped when the next one is read
  std::int64_t number_ = 0;
};

/// True if the line contains only white space.
bool is_blank(std::string_view line);

/// A reader that leaves the parsing of its rows to complete().
class JsonRowReader : public RowReader {
 public:
  Result<std::optional<Row>> next() final;
  Result<std::optional<PendingRow>> next_pending() override = 0;
};

/// JSON lines: one value per line. Blank lines are not rows.
class JsonlReader : public JsonRowReader {
 public:
  JsonlReader(std::string path, TextStream stream)
      : path_(path), lines_(std::move(path), std::move(stream)) {}
  Result<std::optional<PendingRow>> next_pending() override;
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

/// The row with its value. Errors of parse_row.
Result<Row> complete(PendingRow pending);

/// Errc::bad_input if `bytes` exceeds max_row_bytes.
Result<> check_row_size(std::size_t bytes, const Row& row);

/// Plain text: one row {"text": ...} per line, per paragraph, per section between two separators,
/// or per file.
/// A line without blanks at its ends.
std::string_view trimmed_line(std::string_view line);

class TxtReader : public RowReader {
 public:
  TxtReader(std::string path, TextStream stream, ReadOptions options)
      : path_(path), lines_(std::move(path), std::move(stream)), options_(std::move(options)) {}
  Result<std::optional<Row>> next() override;
  Result<> seek(std::int64_t index) override;

 private:
  struct Piece {
    std::string text;
    std::size_t bytes = 0;
    std::int64_t line = 0;  // its first line
  };
  Result<std::optional<Piece>> next_piece();
  bool ends_piece(std::string_view line) const;

  std::string path_;
  Lines lines_;
  ReadOptions options_;
  std::int64_t index_ = 0;
};

}  // namespace troupe::engine::data
