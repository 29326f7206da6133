#include "engine/data/readers/line_readers.h"

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/data/readers/exact_json.h"
#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

namespace {

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

Result<std::optional<Lines::Line>> Lines::next() {
  stream_.skip(std::exchange(pending_, 0));
  std::size_t searched = 0;
  for (std::size_t look = first_look;; look *= 2) {
    const auto text = stream_.peek(look);
    RETURN_IF_ERROR(text);
    if (text->empty()) return std::nullopt;
    const auto end = text->find('\n', searched);
    const bool last = end == std::string_view::npos && text->size() < look;
    if (end != std::string_view::npos || last) {
      ++number_;
      const auto line = text->substr(0, end);
      pending_ = line.size() + (last ? 0 : 1);
      return Line{without_return(line), line.size(), !last};
    }
    searched = text->size();
    if (searched > max_row_bytes + 1) {
      ++number_;
      auto line = long_line(searched);
      RETURN_IF_ERROR(line);
      return *line;
    }
  }
}

// Skips a line that is too long to be returned, and counts its bytes.
Result<Lines::Line> Lines::long_line(std::size_t searched) {
  std::size_t bytes = 0;
  for (;;) {
    stream_.skip(searched);
    bytes += searched;
    if (bytes > max_skipped_bytes)
      return fail(
          Errc::corrupt,
          cat(path_, ":", number_, ": expected a row of at most ", max_row_bytes >> 20,
              " MiB, found a line that does not end within ", max_skipped_bytes >> 20, " MiB"));
    const auto text = stream_.peek(first_look);
    RETURN_IF_ERROR(text);
    const auto end = text->find('\n');
    if (end == std::string_view::npos && !text->empty()) {
      searched = text->size();
      continue;
    }
    const bool ended = end != std::string_view::npos;
    pending_ = ended ? end + 1 : 0;
    return Line{"", bytes + (ended ? end : 0), ended};
  }
}

Result<> Lines::rewind() {
  pending_ = 0;
  number_ = 0;
  return stream_.rewind();
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

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
  auto value =
      parse_exact_json(text, row.where(), {.depth = max_row_depth, .bytes = max_row_bytes});
  if (!value) return fail(value.error().code, with_file_line(value.error().what, row.line));
  if (!value->is_object())
    return fail(Errc::bad_input,
                cat(row.where(),
                    ": expected an object ({\"key\": value, ...}), found: ", value->type_name()));
  row.value = std::move(*value);
  return {};
}

Result<Row> complete(PendingRow pending) {
  if (!pending.text) return std::move(pending.row);
  if (auto ok = parse_row(*pending.text, pending.row); !ok)
    return fail(ok.error().code,
                cat(ok.error().what,
                    pending.ended ? "" : " (the last line has no end: the file may be truncated)"));
  return std::move(pending.row);
}

Result<std::optional<Row>> JsonRowReader::next() {
  auto pending = next_pending();
  RETURN_IF_ERROR(pending);
  if (!*pending) return std::nullopt;
  return complete(std::move(**pending));
}

Result<std::optional<Lines::Line>> JsonlReader::next_line() {
  for (;;) {
    auto line = lines_.next();
    if (!line || !*line || (*line)->bytes > max_row_bytes || !is_blank((*line)->text)) return line;
  }
}

Result<std::optional<PendingRow>> JsonlReader::next_pending() {
  const auto line = next_line();
  RETURN_IF_ERROR(line);
  if (!*line) return std::nullopt;
  PendingRow pending{.row = {Json(), path_, lines_.number(), index_++}, .text = std::nullopt};
  RETURN_IF_ERROR(check_row_size((*line)->bytes, pending.row));
  pending.text.emplace((*line)->text);
  pending.ended = (*line)->ended;
  return pending;
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

std::string_view trimmed_line(std::string_view line) {
  return trim(line, " \t\r");
}

bool TxtReader::ends_piece(std::string_view line) const {
  switch (options_.sample_by) {
    case SampleBy::paragraph:
      return is_blank(line);
    case SampleBy::separator:
      return trimmed_line(line) == options_.separator;
    case SampleBy::automatic:
    case SampleBy::line:
    case SampleBy::document:
      break;
  }
  return false;
}

// Blank lines around a piece are not part of it; those inside it are.
Result<std::optional<TxtReader::Piece>> TxtReader::next_piece() {
  Piece piece;
  std::size_t blank = 0;  // blank lines since the last other one
  for (;;) {
    const auto line = lines_.next();
    RETURN_IF_ERROR(line);
    if (!*line && piece.bytes == 0) return std::nullopt;
    if (!*line) return piece;
    const bool empty = (*line)->bytes <= max_row_bytes && is_blank((*line)->text),
               ends = ends_piece((*line)->text);
    if (ends && piece.bytes == 0) continue;
    if (ends) return piece;
    if (empty) {
      blank += piece.bytes > 0;
      continue;
    }
    if (piece.bytes == 0) piece.line = lines_.number();
    piece.bytes += (piece.bytes > 0 ? blank + 1 : 0) + (*line)->bytes;
    if (piece.bytes > max_skipped_bytes)
      return fail(Errc::corrupt,
                  cat(path_, ":", piece.line, ": expected a row of at most ", max_row_bytes >> 20,
                      " MiB, found one of more than ", max_skipped_bytes >> 20,
                      " MiB; data.sample_by sets the unit of one row"));
    if (piece.bytes <= max_row_bytes)
      piece.text.append(piece.text.empty() ? 0 : blank + 1, '\n').append((*line)->text);
    blank = 0;
    if (options_.sample_by == SampleBy::line) return piece;
  }
}

Result<std::optional<Row>> TxtReader::next() {
  auto piece = next_piece();
  RETURN_IF_ERROR(piece);
  if (!*piece) return std::nullopt;
  Row row{Json(), path_, (*piece)->line, index_++};
  if (auto ok = check_row_size((*piece)->bytes, row); !ok)
    return fail(ok.error().code, cat(ok.error().what, "; data.sample_by sets the unit of one row"));
  std::size_t bad = 0;
  if (!valid_utf8((*piece)->text, &bad))
    return fail(Errc::bad_input,
                cat(row.where(), ": expected UTF-8 text, found another byte at offset ", bad,
                    " of the row"));
  row.value.set("text", std::move((*piece)->text));
  return row;
}

Result<> TxtReader::seek(std::int64_t index) {
  index_ = 0;
  RETURN_IF_ERROR(lines_.rewind());
  while (index_ < index) {
    const auto piece = next_piece();
    RETURN_IF_ERROR(piece);
    if (!*piece) break;
    ++index_;
  }
  return {};
}

}  // namespace troupe::engine::data
