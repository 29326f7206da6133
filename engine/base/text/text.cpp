#include "engine/base/text/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/base/text/terminal_text.h"

namespace troupe {

std::string to_text(double value) {
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return std::string(buffer.data(), end);
}

std::string to_text(double value, int decimals) {
  std::array<char, 400> buffer;
  const int length = std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value);
  return std::string(buffer.data(),
                     std::min<std::size_t>(static_cast<std::size_t>(length), buffer.size() - 1));
}

std::string join(std::initializer_list<std::string_view> pieces) {
  std::size_t size = 0;
  for (auto piece : pieces) size += piece.size();
  std::string out;
  out.reserve(size);
  for (auto piece : pieces) out.append(piece);
  return out;
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out.append(separator);
    out.append(item);
  }
  return out;
}

namespace {

/// Insertions, deletions, replacements, and swaps of two neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), 0u);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(above, row);
  }
  return above.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  // Short words are near to anything: one edit in five letters, at most three.
  std::size_t best_distance = std::clamp<std::size_t>(word.size() / 3, 1, 3) + 1;
  for (const auto& candidate : known)
    if (const std::size_t distance = edit_distance(word, candidate); distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  return best;
}

std::string hex_escape(unsigned char byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
}

std::string quote(std::string_view text, std::size_t limit) {
  bool cut = text.size() > limit;
  if (cut) {
    while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
    text = text.substr(0, limit);
  }
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += hex_escape('\t');
    } else {
      out += c;
    }
  }
  return for_terminal(out) + (cut ? "\"..." : "\"");
}

namespace {

// Length of the well-formed sequence at `i`, or 0 (Unicode 15, table 3-7).
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const auto at = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = at(i);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                             : (lead & 0xF0) == 0xE0        ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (length == 0 || i + length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((at(i + k) & 0xC0) != 0x80) return 0;
  const unsigned char second = at(i + 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return length;
}

// The first position from `i` on where eight bytes are not all ASCII, or fewer are left.
std::size_t after_ascii(std::string_view text, std::size_t i) {
  constexpr std::uint64_t high_bits = 0x8080808080808080;
  for (std::uint64_t eight = 0; text.size() - i >= sizeof eight; i += sizeof eight) {
    std::memcpy(&eight, text.data() + i, sizeof eight);
    if (eight & high_bits) break;
  }
  return i;
}

}  // namespace

bool valid_utf8(std::string_view text, std::size_t* bad) {
  for (std::size_t i = after_ascii(text, 0); i < text.size(); i = after_ascii(text, i)) {
    const std::size_t length = sequence_length(text, i);
    if (length == 0) {
      if (bad) *bad = i;
      return false;
    }
    i += length;
  }
  return true;
}

}  // namespace troupe
