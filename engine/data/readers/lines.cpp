#include "engine/data/readers/lines.h"

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

}  // namespace troupe::engine::data
