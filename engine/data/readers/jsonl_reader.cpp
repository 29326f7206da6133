#include "engine/data/readers/jsonl_reader.h"

#include "engine/base/text.h"

namespace troupe::engine::data {

namespace {

// Converts the line number within the row to the line number within the file.
std::string with_file_line(std::string message, std::int64_t row_line) {
  constexpr std::string_view mark = " at line ";
  const auto at = message.find(mark);
  if (at == std::string::npos) return message;
  std::size_t digits = 0;
  const auto begin = at + mark.size();
  while (begin + digits < message.size() && message[begin + digits] >= '0' &&
         message[begin + digits] <= '9')
    ++digits;
  if (digits == 0 || digits > 9 || !message.substr(begin + digits).starts_with(", column"))
    return message;
  const auto line = std::stoll(message.substr(begin, digits));
  if (line == 1) return message.replace(at, mark.size() + digits + 1, " at");
  return message.replace(begin, digits, std::to_string(row_line + line - 1));
}

}  // namespace

Result<> check_row_size(std::size_t bytes, const Row& row) {
  if (bytes <= max_row_bytes) return {};
  return fail(Errc::bad_input, cat(row.where(), ": expected a row of at most ", max_row_bytes >> 20,
                                   " MiB, found ", bytes, " bytes"));
}

Result<> parse_row(std::string_view text, Row& row) {
  RETURN_IF_ERROR(check_row_size(text.size(), row));
  auto value = parse_json(text, row.where(), {.depth = max_row_depth, .bytes = max_row_bytes});
  if (!value) return fail(value.error().code, with_file_line(value.error().what, row.line));
  if (!value->is_object())
    return fail(Errc::bad_input,
                cat(row.where(),
                    ": expected an object ({\"key\": value, ...}), found: ", value->type_name()));
  row.value = std::move(*value);
  return {};
}

Result<std::optional<Lines::Line>> JsonlReader::next_line() {
  for (;;) {
    auto line = lines_.next();
    if (!line || !*line || (*line)->bytes > max_row_bytes || !is_blank((*line)->text)) return line;
  }
}

Result<std::optional<Row>> JsonlReader::next() {
  const auto line = next_line();
  RETURN_IF_ERROR(line);
  if (!*line) return std::nullopt;
  Row row{Json(), path_, lines_.number(), index_++};
  RETURN_IF_ERROR(check_row_size((*line)->bytes, row));
  if (auto ok = parse_row((*line)->text, row); !ok)
    return fail(
        ok.error().code,
        cat(ok.error().what,
            (*line)->ended ? "" : " (the last line has no end: the file may be truncated)"));
  return row;
}

Result<> JsonlReader::seek(std::int64_t index) {
  index_ = 0;
  RETURN_IF_ERROR(lines_.rewind());
  while (index_ < index) {
    const auto line = next_line();
    RETURN_IF_ERROR(line);
    if (!*line) break;
    ++index_;
  }
  return {};
}

}  // namespace troupe::engine::data
