// How a product's operands are cut: into parts that a core's own cache holds, and that threads share out evenly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe::engine::ops {

/// Of an operand so much that it stays in the second-level cache beside a panel of the other.
inline constexpr std::int64_t words_at_once = 100'000;

struct Part {
  std::int64_t first, count;
};
/// [0, count) in parts of at most `most`, which become smaller towards the end: so the threads that share them out end at about one time.
inline std::vector<Part> parts_of(std::int64_t count, std::int64_t most, int threads) {
  std::vector<Part> parts;
  for (std::int64_t first = 0; first < count; first += parts.back().count) {
    const std::int64_t left = count - first, share = threads == 1 ? left : std::max<std::int64_t>(2, left / (3 * threads));
    parts.push_back({first, std::min({most, share, left})});
  }
  return parts;
}

}  // namespace troupe::engine::ops
