// Plain text: one row {"text": ...} per line, per paragraph, per section between two separators, or
// per file.
#pragma once

#include "engine/data/readers/lines.h"
#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

class TxtReader : public RowReader {
 public:
  TxtReader(std::string path, TextStream stream, ReadOptions options)
      : path_(std::move(path)), lines_(std::move(stream)), options_(std::move(options)) {}
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
