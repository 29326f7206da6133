#include "launch/journal/display_width.h"

#include <algorithm>
#include <array>

#include "engine/base/utf8.h"

namespace troupe::launch {

namespace {

struct CharacterRange {
  char32_t first, last;
};

// Combining marks, joiners and variation selectors of the common scripts.
constexpr std::array<CharacterRange, 8> zero_width{{{0x0300, 0x036F},
                                                    {0x0483, 0x0489},
                                                    {0x0591, 0x05BD},
                                                    {0x064B, 0x065F},
                                                    {0x200B, 0x200F},
                                                    {0x20D0, 0x20F0},
                                                    {0xFE00, 0xFE0F},
                                                    {0xFE20, 0xFE2F}}};
// Unicode's East_Asian_Width W and F, in whole blocks.
constexpr std::array<CharacterRange, 9> two_wide{{{0x1100, 0x115F},
                                                  {0x2E80, 0x303E},
                                                  {0x3041, 0xA4CF},
                                                  {0xAC00, 0xD7A3},
                                                  {0xF900, 0xFAFF},
                                                  {0xFE30, 0xFE6F},
                                                  {0xFF00, 0xFF60},
                                                  {0x1F300, 0x1FAFF},
                                                  {0x20000, 0x3FFFD}}};

template <std::size_t N>
bool contains(const std::array<CharacterRange, N>& ranges, char32_t value) {
  return std::ranges::any_of(ranges, [value](const CharacterRange& range) {
    return value >= range.first && value <= range.last;
  });
}

std::size_t width_of(char32_t value) {
  return contains(zero_width, value) ? 0 : contains(two_wide, value) ? 2 : 1;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  const std::string whole = repair_utf8(text);
  std::size_t columns = 0;
  for (std::size_t at = 0; at < whole.size();) {
    const CodePoint point = code_point_at(whole, at);
    columns += width_of(point.value);
    at += point.size;
  }
  return columns;
}

std::string_view fit_width(std::string_view text, std::size_t columns) {
  std::size_t used = 0, at = 0;
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    used += width_of(point.value);
    if (used > columns) break;
    at += point.size;
  }
  return text.substr(0, at);
}

std::string one_line(std::string_view text) {
  std::string out = repair_utf8(text);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return out;
}

}  // namespace troupe::launch
