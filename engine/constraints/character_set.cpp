#include "engine/constraints/character_set.h"

#include <algorithm>

namespace troupe::engine::constraints {

CharacterSet CharacterSet::of(std::vector<CodePointRange> ranges) {
  CharacterSet out;
  out.ranges_ = std::move(ranges);
  out.normalize();
  return out;
}

std::optional<CharacterSet> CharacterSet::shorthand(char32_t letter) {
  CharacterSet out;
  switch (letter) {
    case 'd':
    case 'D':
      out = of({{'0', '9'}});
      break;
    case 'w':
    case 'W':
      out = of({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
      break;
    // Python counts 0x1C to 0x1F as white space and others do not: they are in neither set.
    case 's':
      out = of({{'\t', '\r'}, {' ', ' '}});
      break;
    case 'S':
      out = of({{'\t', '\r'}, {0x1C, ' '}});
      break;
    default:
      return std::nullopt;
  }
  if (letter < 'a') out = out.ascii_complement();
  out.shorthand_ = true;
  return out;
}

void CharacterSet::normalize() {
  std::ranges::sort(ranges_);
  std::vector<CodePointRange> merged;
  for (const auto& [low, high] : ranges_) {
    if (!merged.empty() && low <= merged.back().second + 1)
      merged.back().second = std::max(merged.back().second, high);
    else
      merged.emplace_back(low, high);
  }
  ranges_ = std::move(merged);
}

CharacterSet CharacterSet::complement_below(char32_t limit) const {
  CharacterSet out;
  char32_t from = 0;
  for (const auto& [low, high] : ranges_) {
    if (low >= limit) break;
    if (from < low) out.ranges_.emplace_back(from, low - 1);
    from = high + 1;
  }
  if (from < limit) out.ranges_.emplace_back(from, limit - 1);
  return out;
}

CharacterSet CharacterSet::complement() const {
  return complement_below(0x110000);
}
CharacterSet CharacterSet::ascii_complement() const {
  return complement_below(0x80);
}

}  // namespace troupe::engine::constraints
