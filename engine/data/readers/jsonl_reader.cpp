#include "engine/data/readers/jsonl_reader.h"

#include "engine/base/text.h"

namespace troupe::engine::data {

std::string_view text_of(const MappedFile& file) {
  const auto bytes = file.bytes();
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

namespace {

// The parser counts lines from the start of the row; people count from the start of the file.
std::string with_file_line(std::string message, std::int64_t row_line) {
  constexpr std::string_view mark = " at line ";
  const auto at = message.find(mark);
  if (at == std::string::npos) return message;
  std::size_t digits = 0;
  const auto begin = at + mark.size();
  while (begin + digits < message.size() && message[begin + digits] >= '0' && message[begin + digits] <= '9') ++digits;
  if (digits == 0 || digits > 9 || !message.substr(begin + digits).starts_with(", column")) return message;
  const auto line = std::stoll(message.substr(begin, digits));
  if (line == 1) return message.replace(at, mark.size() + digits + 1, " at");
  return message.replace(begin, digits, std::to_string(row_line + line - 1));
}

}  // namespace

Result<> parse_row(std::string_view text, Row& row) {
  const auto bad = [&](const std::string& what) { return fail(Errc::bad_input, cat(row.where(), ": ", what)); };
  if (text.size() > max_row_bytes)
    return bad(cat("expected a row of at most ", max_row_bytes >> 20, " MiB, found ", text.size(), " bytes"));
  auto value = parse_json(text, row.where(), {.depth = max_row_depth, .bytes = max_row_bytes});
  if (!value) return fail(value.error().code, with_file_line(value.error().what, row.line));
  if (!value->is_object()) return bad(cat("expected an object ({\"key\": value, ...}), found: ", value->type_name()));
  row.value = std::move(*value);
  return {};
}

JsonlReader::JsonlReader(std::string path, MappedFile file) : path_(std::move(path)), file_(std::move(file)), text_(text_of(file_)) {}

bool JsonlReader::take_line(std::string_view& line) {
  while (at_ < text_.size()) {
    const auto end = text_.find('\n', at_);
    line = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
    at_ = end == std::string_view::npos ? text_.size() : end + 1;
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) return true;
  }
  return false;
}

Result<std::optional<Row>> JsonlReader::next() {
  std::string_view line;
  if (!take_line(line)) return std::nullopt;
  Row row{Json(), path_, line_, index_++};
  if (auto ok = parse_row(line, row); !ok) {
    const bool cut = at_ == text_.size() && !text_.ends_with('\n');
    return fail(ok.error().code, cat(ok.error().what, cut ? " (the last line has no end: the file may be truncated)" : ""));
  }
  return row;
}

Result<> JsonlReader::seek(std::int64_t index) {
  at_ = 0, line_ = 0, index_ = 0;
  std::string_view line;
  while (index_ < index && take_line(line)) ++index_;
  return {};
}

}  // namespace troupe::engine::data
