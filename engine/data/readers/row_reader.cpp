#include "engine/data/readers/row_reader.h"

#include "engine/base/text.h"
#include "engine/data/readers/arrow_library.h"
#include "engine/data/readers/csv_reader.h"
#include "engine/data/readers/file_list.h"
#include "engine/data/readers/json_reader.h"
#include "engine/data/readers/line_readers.h"

namespace troupe::engine::data {
namespace {

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

Result<std::unique_ptr<RowReader>> open_text(const std::string& path, const std::string& format,
                                             TextStream stream, const ReadOptions& options) {
  const auto begin = stream.peek(4096);
  RETURN_IF_ERROR(begin);
  RETURN_IF_ERROR(refuse_other_formats(*begin, path));
  if (format == ".jsonl" || format == ".ndjson") return made<JsonlReader>(path, std::move(stream));
  if (format == ".csv" || format == ".tsv")
    return CsvReader::open(path, std::move(stream), format == ".csv" ? ',' : '\t',
                           options.column_names);
  if (format == ".txt") return made<TxtReader>(path, std::move(stream), options);
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
