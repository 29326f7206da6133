// RowReader: the interface of all data files, one JSON value per row. Formats: jsonl,
// json, csv, tsv and txt, each also compressed by gzip; parquet and arrow.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json/json.h"

namespace troupe::engine::data {

/// One row and its position, for messages and exact resumption.
struct Row {
  Json value;
  std::string file;
  std::int64_t line = 0;  ///< 1-based line of the file; if `numbered`, the 1-based row
  /// 0-based row of the file, counting malformed rows: the argument of seek().
  std::int64_t index = 0;
  bool numbered = false;  ///< the file has rows, not lines (parquet, arrow)
  /// "data.jsonl:17" or "train.parquet: row 3".
  std::string where() const {
    // Inline, because the parquet library uses it too and links nothing of this folder.
    return file + (numbered ? ": row " : ":") + std::to_string(line);
  }
};

/// A row that may still be text. Parsing takes most of the time of reading, so readers leave it to
/// other threads where they can: complete() of line_readers.h.
struct PendingRow {
  Row row;
  std::optional<std::string> text;  ///< of the row, in JSON; nullopt: row.value is complete
  bool ended = true;                ///< false: the file ends within the text
};

class RowReader {
 public:
  virtual ~RowReader() = default;
  /// The next row, or nullopt at the end. A malformed row is Errc::bad_input, naming file and line,
  /// and the next call continues with the next row. Any other error (Errc::corrupt, io) is
  /// final.
  virtual Result<std::optional<Row>> next() = 0;
  /// As next(), but complete() may be what finds that the row is malformed.
  virtual Result<std::optional<PendingRow>> next_pending() {
    auto row = next();
    RETURN_IF_ERROR(row);
    if (!*row) return std::nullopt;
    return PendingRow{.row = std::move(**row), .text = std::nullopt};
  }
  /// The next call of next() returns row `index`, or the end if there are fewer rows.
  virtual Result<> seek(std::int64_t index) = 0;
};

/// Limits of one row, for all formats.
constexpr std::size_t max_row_bytes = 8u << 20;
constexpr std::size_t max_row_depth = 32;
/// A longer row is skipped to its end, but not further than this: a sparse file ends the reading.
constexpr std::size_t max_skipped_bytes = 256u << 20;

/// The unit of one row of a plain text file (as in Hugging Face's datasets, and `separator`).
enum class SampleBy {
  /// `line`; where ReadOptions wants documents, `separator` if the file has lines that are the
  /// separator alone, else `document`.
  automatic,
  line,       ///< each line that is not blank
  paragraph,  ///< lines up to a blank one
  document,   ///< the whole file
  separator,  ///< lines up to one that is the separator alone
};
constexpr std::array<std::string_view, 5> names_of(SampleBy) {
  return {"auto", "line", "paragraph", "document", "separator"};
}

/// Settings that the files do not contain.
struct ReadOptions {
  SampleBy sample_by = SampleBy::automatic;
  std::string separator = "<|endoftext|>";
  /// Column names of csv and tsv files without a header; empty: the first line has them.
  std::vector<std::string> column_names;
  bool documents = false;  ///< rows are documents (pretraining), for SampleBy::automatic

  static void each_field(auto& self, auto&& field) {
    field("sample_by", self.sample_by,
          "row of a text file: a line, a paragraph (up to a blank line), the whole document, or "
          "the lines up to data.separator; auto: a line; for pretraining separator where the file "
          "has lines that are the separator, else document");
    field("separator", self.separator, "line that ends a document of a text file");
    field("column_names", self.column_names,
          "column names of csv and tsv files without a header; empty: the first line is the "
          "header");
  }
};

/// Opens a file by its content and extension: .jsonl and .ndjson (one value per line, or one
/// array), .json (an array, an object with a list of rows, or lines), .csv (columns separated by
/// commas or semicolons), .tsv, .txt (JSON if its first line is), each also with .gz; .parquet;
/// .arrow (IPC file or stream). Errc::not_found, io, corrupt; Errc::unsupported for another format
/// or a missing Arrow library, with the remedy.
Result<std::unique_ptr<RowReader>> open_rows(const std::string& path,
                                             const ReadOptions& options = {});

}  // namespace troupe::engine::data
