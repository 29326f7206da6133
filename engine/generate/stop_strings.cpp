#include "engine/generate/stop_strings.h"

#include <algorithm>
#include <string_view>

namespace troupe::engine::generate {

namespace {

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// The earliest match that ends beyond the first `first_bytes` bytes.
StopMatch search(std::string text, const std::vector<std::string>& stops, std::size_t first_bytes) {
  StopMatch match;
  match.at = std::string::npos;
  for (const std::string& stop : stops) {
    const std::size_t first = first_bytes < stop.size() ? 0 : first_bytes - stop.size() + 1;
    const std::size_t at = text.find(stop, first);
    if (at < match.at) match = {stop, at, {}};
  }
  if (match.found()) text.resize(match.at);
  match.text = std::move(text);
  return match;
}

/// Bytes of the first `count` tokens, of which the last may have part of a character.
std::size_t bytes_of_first(std::span<const std::int32_t> ids, std::size_t count,
                           const TextDecoder& decode) {
  if (count == 0) return 0;
  const std::string text = decode(ids.first(count));
  std::string_view whole = text;
  while (whole.ends_with(replacement_character)) whole.remove_suffix(replacement_character.size());
  return whole.size();
}

}  // namespace

StopMatch find_stop(std::span<const std::int32_t> ids, const std::vector<std::string>& stops,
                    const TextDecoder& decode, std::int32_t at_least) {
  const auto skipped = static_cast<std::size_t>(at_least);
  if (stops.empty() || ids.size() <= skipped) return {};
  std::size_t longest = 0;
  for (const std::string& stop : stops) longest = std::max(longest, stop.size());
  // The new token may complete a string that began `longest` bytes before it. The text of a tail
  // equals the end of the whole text except for its first characters (a stripped space, a partial
  // character), hence the margin. Tokens without text extend the tail.
  constexpr std::size_t margin = 64;
  for (std::size_t tail = longest + margin; tail < ids.size(); tail *= 2) {
    const std::string text = decode(ids.last(tail));
    if (search(text, stops, 0).found()) break;
    const std::string last = decode(ids.last(1));
    if (text.size() >= longest + last.size() + margin) return {};
  }
  StopMatch match = search(decode(ids), stops, bytes_of_first(ids, skipped, decode));
  return match.found() ? match : StopMatch{};
}

}  // namespace troupe::engine::generate
