#include "engine/data/readers/txt_reader.h"

#include "engine/base/text.h"
#include "engine/data/readers/jsonl_reader.h"

namespace troupe::engine::data {
namespace {

std::string_view trimmed(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

bool TxtReader::ends_piece(std::string_view line) const {
  switch (options_.sample_by) {
    case SampleBy::paragraph:
      return is_blank(line);
    case SampleBy::separator:
      return trimmed(line) == options_.separator;
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
