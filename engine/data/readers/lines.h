// Lines: iterates over the lines of a text of any length.
#pragma once

#include <optional>

#include "engine/data/readers/text_stream.h"

namespace troupe::engine::data {

class Lines {
 public:
  struct Line {
    std::string_view text;  ///< without the line end; empty if longer than max_row_bytes
    std::size_t bytes = 0;  ///< size of the whole line
    bool ended = true;      ///< false: the file ends before the line does
  };
  explicit Lines(TextStream stream) : stream_(std::move(stream)) {}
  /// Returns the next line; nullopt at the end. The line is valid until the next call. Errors of
  /// TextStream::peek.
  Result<std::optional<Line>> next();
  /// Number of the line that next() returned last, counted from 1.
  std::int64_t number() const { return number_; }
  Result<> rewind();

 private:
  Result<Line> long_line(std::size_t searched);
  TextStream stream_;
  std::size_t pending_ = 0;  // bytes of the last line, skipped when the next one is read
  std::int64_t number_ = 0;
};

/// True if the line contains only white space.
bool is_blank(std::string_view line);

}  // namespace troupe::engine::data
