// Tables as text: csv (RFC 4180) and tsv. A row is an object of strings under the names of the
// header; an empty cell without quotation marks is null.
#pragma once

#include "engine/data/readers/row_reader.h"
#include "engine/data/readers/text_stream.h"

namespace troupe::engine::data {

class CsvReader : public RowReader {
 public:
  /// `names`: names of the columns; empty: the first line has them. Errc::corrupt if the header
  /// cannot be read.
  static Result<std::unique_ptr<RowReader>> open(std::string path, TextStream stream,
                                                 char delimiter, std::vector<std::string> names);
  Result<std::optional<Row>> next() override;
  Result<> seek(std::int64_t index) override;

 private:
  struct Cell {
    std::string text;
    bool quoted = false;
  };
  struct Record {
    std::vector<Cell> cells;
    std::int64_t line = 0;  // first line of the record
    std::string wrong;      // error message, or ""
  };
  CsvReader(std::string path, TextStream stream, char delimiter, std::vector<std::string> names)
      : path_(std::move(path)),
        stream_(std::move(stream)),
        delimiter_(delimiter),
        names_(std::move(names)),
        header_(names_.empty()) {}
  Result<> read_header();
  Result<std::optional<Record>> next_record();
  bool parse(std::string_view text, bool last, Record& record, std::size_t& used) const;
  bool parse_quoted(std::string_view text, bool last, Cell& cell, std::size_t& at) const;
  std::string wrong_with(const Record& record) const;

  std::string path_;
  TextStream stream_;
  char delimiter_;
  std::vector<std::string> names_;
  bool header_;             // the first record is one
  std::int64_t line_ = 1;   // line of the next byte
  std::int64_t index_ = 0;  // index of the next row
};

}  // namespace troupe::engine::data
