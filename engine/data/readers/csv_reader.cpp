#include "engine/data/readers/csv_reader.h"

#include <algorithm>
#include <set>

#include "engine/base/text/text.h"

namespace troupe::engine::data {
namespace {

constexpr std::size_t max_columns = 4096;

std::string column_list(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const auto& name : names) out.push_back(quote(name, 40));
  if (out.size() > 10) {
    out.resize(10);
    out.emplace_back("...");
  }
  return join(out, ", ");
}

}  // namespace

Result<std::unique_ptr<RowReader>> CsvReader::open(std::string path, TextStream stream,
                                                   char delimiter, std::vector<std::string> names) {
  std::unique_ptr<CsvReader> reader(
      new CsvReader(std::move(path), std::move(stream), delimiter, std::move(names)));
  RETURN_IF_ERROR(reader->header_ ? reader->read_header() : Result<>());
  return std::unique_ptr<RowReader>(std::move(reader));
}

// Parses a cell after its opening quotation mark. False if the text ends too early.
bool CsvReader::parse_quoted(std::string_view text, bool last, Cell& cell, std::size_t& at) const {
  for (cell.quoted = true;;) {
    const auto mark = text.find('"', at);
    if (mark == std::string_view::npos) return false;
    cell.text.append(text.substr(at, mark - at));
    at = mark + 1;
    if (at == text.size() && !last) return false;
    if (at == text.size() || text[at] != '"') return true;
    cell.text += '"';
    ++at;
  }
}

// Parses the record at the beginning of `text`; `used` receives its length in bytes. False if it
// does not end within the text.
bool CsvReader::parse(std::string_view text, bool last, Record& record, std::size_t& used) const {
  const char ends[] = {delimiter_, '\n'};
  for (std::size_t at = 0;;) {
    Cell cell;
    if (at < text.size() && text[at] == '"' && !parse_quoted(text, last, cell, ++at)) return false;
    const auto end = std::min(text.find_first_of(std::string_view(ends, 2), at), text.size());
    if (end == text.size() && !last) return false;
    const bool line_ends = end == text.size() || text[end] == '\n';
    auto rest = text.substr(at, end - at);
    if (line_ends && rest.ends_with('\r')) rest.remove_suffix(1);
    if (cell.quoted && !rest.empty() && record.wrong.empty())
      record.wrong = cat("expected ", quote(std::string_view(&delimiter_, 1)),
                         " or the end of the row behind a closing quotation mark, found ",
                         quote(rest, 20), " (a quotation mark inside a cell is written twice)");
    if (!cell.quoted) cell.text = rest;
    if (record.cells.size() <= max_columns) record.cells.push_back(std::move(cell));
    at = std::min(end + 1, text.size());
    if (line_ends) {
      used = at;
      return true;
    }
  }
}

Result<std::optional<CsvReader::Record>> CsvReader::next_record() {
  for (std::size_t look = first_look;;) {
    const auto text = stream_.peek(look);
    RETURN_IF_ERROR(text);
    if (text->empty()) return std::nullopt;
    Record record{.cells = {}, .line = line_, .wrong = {}};
    const bool last = text->size() < look;
    std::size_t used = 0;
    if (!parse(*text, last, record, used)) {
      if (last || text->size() > max_row_bytes)
        return fail(Errc::corrupt,
                    cat(path_, ":", line_, ": the row that begins here does not end ",
                        last ? std::string("before the file does")
                             : cat("within ", max_row_bytes >> 20, " MiB"),
                        ": a quotation mark is opened and not closed"));
      look *= 2;
      continue;
    }
    line_ += std::count(text->begin(), text->begin() + static_cast<std::ptrdiff_t>(used), '\n');
    stream_.skip(used);
    look = first_look;
    if (used > max_row_bytes)
      record.wrong =
          cat("expected a row of at most ", max_row_bytes >> 20, " MiB, found ", used, " bytes");
    const bool blank =
        record.cells.size() == 1 && !record.cells[0].quoted && record.cells[0].text.empty();
    if (!blank) return record;
  }
}

Result<> CsvReader::read_header() {
  auto record = next_record();
  RETURN_IF_ERROR(record);
  if (!*record) return {};  // an empty file: there is no row either
  const auto bad = [&](const std::string& what) {
    return fail(Errc::corrupt, cat(path_, ":", (*record)->line, ": ", what));
  };
  if (!(*record)->wrong.empty()) return bad((*record)->wrong);
  if ((*record)->cells.size() > max_columns)
    return bad(cat("expected at most ", max_columns, " columns"));
  std::set<std::string_view> seen;
  for (const auto& cell : (*record)->cells) {
    if (!valid_utf8(cell.text)) return bad("expected UTF-8 text in the header");
    if (!seen.insert(cell.text).second)
      return bad(cat("two columns are called ", quote(cell.text),
                     " in the header; if the first line is a row already, set "
                     "data.column_names"));
    names_.push_back(cell.text);
  }
  return {};
}

std::string CsvReader::wrong_with(const Record& record) const {
  if (!record.wrong.empty()) return record.wrong;
  if (record.cells.size() != names_.size())
    return cat("expected ", names_.size(), " columns (", column_list(names_), "), found ",
               record.cells.size() > max_columns ? cat("more than ", max_columns)
                                                 : std::to_string(record.cells.size()));
  for (std::size_t i = 0; i < names_.size(); ++i) {
    std::size_t bad = 0;
    if (!valid_utf8(record.cells[i].text, &bad))
      return cat("column ", quote(names_[i]),
                 ": expected UTF-8 text, found another byte at offset ", bad);
  }
  return "";
}

Result<std::optional<Row>> CsvReader::next() {
  auto record = next_record();
  RETURN_IF_ERROR(record);
  if (!*record) return std::nullopt;
  Row row{Json(), path_, (*record)->line, index_++};
  if (auto wrong = wrong_with(**record); !wrong.empty())
    return fail(Errc::bad_input, cat(row.where(), ": ", wrong));
  Json::Object members;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    auto& cell = (*record)->cells[i];
    members.emplace_back(names_[i],
                         cell.text.empty() && !cell.quoted ? Json() : Json(std::move(cell.text)));
  }
  row.value = Json(std::move(members));
  return row;
}

Result<> CsvReader::seek(std::int64_t index) {
  line_ = 1;
  index_ = 0;
  RETURN_IF_ERROR(stream_.rewind());
  for (std::int64_t skip = index + (header_ ? 1 : 0); skip > 0; --skip) {
    const auto record = next_record();
    RETURN_IF_ERROR(record);
    if (!*record) return {};
    index_ += !header_ || skip <= index;
  }
  return {};
}

}  // namespace troupe::engine::data
