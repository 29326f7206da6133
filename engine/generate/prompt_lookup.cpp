#include "engine/generate/prompt_lookup.h"

#include <algorithm>

namespace troupe::engine::generate {

namespace {

/// The end of the latest occurrence of the last `length` tokens before the last one; 0: none.
std::size_t earlier_end(std::span<const std::int32_t> tokens, std::size_t length) {
  if (tokens.size() <= length) return 0;
  const auto wanted = tokens.last(length);
  for (std::size_t end = tokens.size() - 1; end >= length; --end) {
    if (tokens[end - 1] == wanted.back() &&
        std::ranges::equal(tokens.subspan(end - length, length), wanted))
      return end;
  }
  return 0;
}

}  // namespace

std::vector<std::int32_t> look_up_draft(std::span<const std::int32_t> tokens, std::size_t count) {
  std::size_t end = earlier_end(tokens, 3);
  if (end == 0) end = earlier_end(tokens, 2);
  if (end == 0) return {};
  // A text that repeats itself continues beyond its last token: copy the copy, as LZ77 does.
  std::vector<std::int32_t> draft;
  for (std::size_t i = end; draft.size() < count; ++i)
    draft.push_back(i < tokens.size() ? tokens[i] : draft[i - tokens.size()]);
  return draft;
}

}  // namespace troupe::engine::generate
