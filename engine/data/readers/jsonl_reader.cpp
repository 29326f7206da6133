#include "engine/data/readers/jsonl_reader.h"

#include "engine/base/text.h"

namespace troupe::engine::data {

std::string_view text_of(const MappedFile& file) {
  const auto bytes = file.bytes();
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

Result<Json> parse_row(std::string_view text, const std::string& where) {
  if (text.size() > max_row_bytes)
    return fail(Errc::bad_input, cat(where, ": expected a row of at most ", max_row_bytes >> 20, " MiB, found ", text.size(), " bytes"));
  auto value = parse_json(text, where, {.depth = max_row_depth, .bytes = max_row_bytes});
  if (value && !value->is_object())
    return fail(Errc::bad_input, cat(where, ": expected an object ({\"key\": value, ...}), found: ", value->type_name()));
  return value;
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
  auto value = parse_row(line, row.where());
  if (!value) {
    const bool cut = at_ == text_.size() && !text_.ends_with('\n');
    return fail(value.error().code, cat(value.error().what, cut ? " (the last line has no end: the file may be truncated)" : ""));
  }
  row.value = std::move(*value);
  return row;
}

Result<> JsonlReader::seek(std::int64_t index) {
  at_ = 0, line_ = 0, index_ = 0;
  std::string_view line;
  while (index_ < index && take_line(line)) ++index_;
  return {};
}

}  // namespace troupe::engine::data
