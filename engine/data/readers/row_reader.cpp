#include "engine/data/readers/row_reader.h"

#include <algorithm>
#include <utility>

#include "engine/base/environment/module.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/data/readers/arrow_reader.h"
#include "engine/data/readers/csv_reader.h"
#include "engine/data/readers/file_list.h"
#include "engine/data/readers/json_reader.h"
#include "engine/data/readers/line_readers.h"
#include "engine/data/readers/packed_reader.h"
#include "engine/data/readers/parquet_reader.h"

namespace troupe::engine::data {
namespace {

using OpenedReader = Result<std::unique_ptr<RowReader>>;
using OpenParquet = decltype(troupe_open_parquet);
using OpenArrow = decltype(troupe_open_arrow);

template <class Open>
Result<Open*> load(const char* symbol_name) {
  const auto symbol = load_from_module("libtroupe_parquet.so", symbol_name);
  if (symbol) return reinterpret_cast<Open*>(*symbol);
  if (symbol.error().code != Errc::not_found)
    return fail(
        Errc::unsupported,
        cat("reading parquet and Arrow files needs their library, but ", symbol.error().what,
            ": run cmake/fetch_arrow.sh with the build folder and build again"));
  return fail(Errc::unsupported, cat("reading parquet and Arrow files needs Arrow's library, which "
                                     "this build was made without (",
                                     symbol.error().what,
                                     "): run cmake/fetch_arrow.sh with the build folder, then "
                                     "cmake and the build again, or convert the file to .jsonl"));
}

template <class Open, class... More>
OpenedReader open_with(const Result<Open*>& open, const std::string& path, More&&... more) {
  if (!open) return fail(open.error().code, cat(path, ": ", open.error().what));
  OpenedReader reader = fail(Errc::internal, "");
  (*open)(path, std::forward<More>(more)..., reader);
  return reader;
}

/// Opens a parquet file. Errc::unsupported if the library is missing, with the remedy; Errc::io,
/// corrupt for the file.
OpenedReader open_parquet(const std::string& path) {
  static const auto open = load<OpenParquet>("troupe_open_parquet");
  return open_with(open, path);
}

/// Opens an Arrow IPC file or stream, mapped. The same errors.
OpenedReader open_arrow(const std::string& path, MappedFile file) {
  static const auto open = load<OpenArrow>("troupe_open_arrow");
  return open_with(open, path, std::make_shared<const MappedFile>(std::move(file)));
}

template <class Reader, class... Args>
Result<std::unique_ptr<RowReader>> made(Args&&... args) {
  return std::unique_ptr<RowReader>(std::make_unique<Reader>(std::forward<Args>(args)...));
}

// Rejects files of other formats by their first bytes, whatever the name.
Result<> refuse_other_formats(std::string_view text, const std::string& path) {
  if (text.starts_with("PK\x03\x04"))
    return fail(Errc::unsupported, cat(path, ": a zip archive; unpack it first"));
  if (text.starts_with("\x28\xB5\x2F\xFD"))
    return fail(Errc::unsupported, cat(path, ": compressed by zstd; unpack it first (unzstd)"));
  if (text.starts_with("BZh") && text.substr(4).starts_with("1AY&SY"))
    return fail(Errc::unsupported, cat(path, ": compressed by bzip2; unpack it first (bunzip2)"));
  if (text.starts_with("\xFD"
                       "7zXZ"))
    return fail(Errc::unsupported, cat(path, ": compressed by xz; unpack it first (unxz)"));
  if (text.starts_with("FEA1"))
    return fail(Errc::unsupported,
                cat(path, ": a Feather file of version 1; save it as version 2 or as .parquet"));
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return fail(Errc::unsupported, cat(path, ": UTF-16 text; save it as UTF-8"));
  return {};
}

// Opens a .json file, which is read as JSON lines if one object follows another.
Result<std::unique_ptr<RowReader>> open_json(const std::string& path, TextStream stream) {
  auto whole = WholeText::open(path);
  RETURN_IF_ERROR(whole);
  auto rows = find_rows(whole->text(), path);
  RETURN_IF_ERROR(rows);
  if (!*rows) return made<JsonlReader>(path, std::move(stream));
  return made<JsonReader>(path, std::move(*whole), std::move(**rows));
}

// The first line of the text that is not blank, as far as it fits into a row, and what follows it.
struct FirstLine {
  std::string_view line, rest;
};
Result<FirstLine> first_line(TextStream& stream) {
  constexpr const char* blank = " \t\r\n";
  for (std::size_t look = first_look;; look *= 2) {
    const auto text = stream.peek(look);
    RETURN_IF_ERROR(text);
    const auto begin = std::min(text->find_first_not_of(blank), text->size());
    const auto end = text->find('\n', begin);
    const bool whole = end != std::string_view::npos || text->size() < look;
    if (!whole && look <= max_row_bytes) continue;
    const auto line = text->substr(begin, end - begin);
    const auto rest = end == std::string_view::npos ? std::string_view() : text->substr(end);
    return FirstLine{line.substr(0, line.find_last_not_of(blank) + 1),
                     rest.substr(std::min(rest.find_first_not_of(blank), rest.size()))};
  }
}

bool is_object(std::string_view text) {
  const auto value = parse_json(text, "", {.depth = max_row_depth, .bytes = max_row_bytes});
  return value && value->is_object();
}

// A file of JSON lines by its name. Lines are objects, so a bracket begins one array of all rows,
// unless the array ends with the line and others follow it.
Result<std::unique_ptr<RowReader>> open_json_lines(const std::string& path, TextStream stream) {
  const auto first = first_line(stream);
  RETURN_IF_ERROR(first);
  const bool array =
      first->line.starts_with('[') && !(first->line.ends_with(']') && !first->rest.empty());
  if (array) return open_json(path, std::move(stream));
  return made<JsonlReader>(path, std::move(stream));
}

// The unit of rows. No row may be longer than max_row_bytes, so that the separator of a file that
// has one stands within the first bytes.
Result<SampleBy> unit_of(TextStream& stream, const ReadOptions& options) {
  if (options.sample_by != SampleBy::automatic) return options.sample_by;
  if (!options.documents) return SampleBy::line;
  const auto text = stream.peek(max_row_bytes + options.separator.size() + 2);
  RETURN_IF_ERROR(text);
  for (std::size_t begin = 0; begin < text->size();) {
    const auto end = std::min(text->find('\n', begin), text->size());
    if (trimmed_line(text->substr(begin, end - begin)) == options.separator)
      return SampleBy::separator;
    begin = end + 1;
  }
  return SampleBy::document;
}

// A file of text by its name. By lines, text whose first line is an object is JSON lines, and text
// that begins an array of objects is JSON.
Result<std::unique_ptr<RowReader>> open_plain_text(const std::string& path, TextStream stream,
                                                   ReadOptions options) {
  if (options.sample_by == SampleBy::line || options.sample_by == SampleBy::automatic) {
    const auto first = first_line(stream);
    RETURN_IF_ERROR(first);
    const auto line = first->line;
    const auto inside = line.substr(std::min<std::size_t>(1, line.size())),
               next = line.size() > 1 ? inside : first->rest;
    const auto begin = std::min(next.find_first_not_of(" \t"), next.size());
    if (line.starts_with('{') && is_object(line)) return made<JsonlReader>(path, std::move(stream));
    if (line.starts_with('[') && next.substr(begin).starts_with('{'))
      return open_json(path, std::move(stream));
  }
  const auto unit = unit_of(stream, options);
  RETURN_IF_ERROR(unit);
  options.sample_by = *unit;
  return made<TxtReader>(path, std::move(stream), std::move(options));
}

// The character between the columns of a .csv file: a comma, or a semicolon as spreadsheets write
// it where the comma is the decimal mark. Counted outside quotation marks in the first line, which
// has `columns` columns (0: unknown).
Result<char> csv_delimiter(TextStream& stream, std::size_t columns) {
  const auto first = first_line(stream);
  RETURN_IF_ERROR(first);
  std::size_t commas = 0, semicolons = 0;
  bool quoted = false;
  for (const char c : first->line) {
    quoted ^= c == '"';
    commas += !quoted && c == ',';
    semicolons += !quoted && c == ';';
  }
  const bool fits = columns == 0 ? commas == 0 : semicolons + 1 == columns && commas + 1 != columns;
  return semicolons > 0 && fits ? ';' : ',';
}

Result<std::unique_ptr<RowReader>> open_table(const std::string& path, const std::string& format,
                                              TextStream stream, const ReadOptions& options) {
  const auto delimiter =
      format == ".tsv" ? Result<char>('\t') : csv_delimiter(stream, options.column_names.size());
  RETURN_IF_ERROR(delimiter);
  return CsvReader::open(path, std::move(stream), *delimiter, options.column_names);
}

Result<std::unique_ptr<RowReader>> open_text(const std::string& path, const std::string& format,
                                             TextStream stream, const ReadOptions& options) {
  const auto begin = stream.peek(4096);
  RETURN_IF_ERROR(begin);
  RETURN_IF_ERROR(refuse_other_formats(*begin, path));
  if (format == ".jsonl" || format == ".ndjson") return open_json_lines(path, std::move(stream));
  if (format == ".csv" || format == ".tsv")
    return open_table(path, format, std::move(stream), options);
  if (format == ".txt") return open_plain_text(path, std::move(stream), options);
  const auto first = begin->find_first_not_of(" \t\r\n");
  const bool json =
      first != std::string_view::npos && ((*begin)[first] == '[' || (*begin)[first] == '{');
  if (format != ".json" && !json)
    return fail(Errc::unsupported,
                cat(path, ": not a data file that is read here; known formats: ", known_formats));
  return open_json(path, std::move(stream));
}

}  // namespace

Result<std::unique_ptr<RowReader>> open_rows(const std::string& path, const ReadOptions& options) {
  if (is_packed_file(path)) return PackedReader::open(path);
  auto file = MappedFile::open(path);
  RETURN_IF_ERROR(file);
  const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()),
                               file->bytes().size());
  const auto format = data_format(path);
  if (bytes.starts_with("PAR1")) return open_parquet(path);
  if (format == ".parquet")
    return fail(Errc::corrupt, cat(path, ": expected a parquet file (PAR1 at its start), found ",
                                   quote(bytes.substr(0, 8))));
  if (bytes.starts_with("ARROW1") || bytes.starts_with("\xFF\xFF\xFF\xFF"))
    return open_arrow(path, std::move(*file));
  if (format == ".arrow")
    return fail(Errc::corrupt,
                cat(path, ": expected an Arrow IPC file (ARROW1 at its start) or stream, found ",
                    quote(bytes.substr(0, 8))));
  auto stream = TextStream::open(path);
  RETURN_IF_ERROR(stream);
  return open_text(path, format, std::move(*stream), options);
}

}  // namespace troupe::engine::data
