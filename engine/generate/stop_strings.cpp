#include "engine/generate/stop_strings.h"

#include <algorithm>

namespace troupe::engine::generate {

namespace {

StopMatch search(std::string text, const std::vector<std::string>& stops) {
  StopMatch match;
  match.at = std::string::npos;
  for (const std::string& stop : stops) {
    const std::size_t at = text.find(stop);
    if (at < match.at) match = {stop, at, {}};
  }
  if (match.found()) text.resize(match.at);
  match.text = std::move(text);
  return match;
}

}  // namespace

StopMatch find_stop(std::span<const std::int32_t> ids, const std::vector<std::string>& stops,
                    const TextDecoder& decode) {
  if (stops.empty()) return {};
  std::size_t longest = 0;
  for (const std::string& stop : stops) longest = std::max(longest, stop.size());
  // The new token may complete a string that began `longest` bytes before it. The text of a tail
  // equals the end of the whole text except for its first characters (a stripped space, a partial
  // character), hence the margin. Tokens without text extend the tail.
  constexpr std::size_t margin = 64;
  for (std::size_t tail = longest + margin; tail < ids.size(); tail *= 2) {
    const std::string text = decode(ids.last(tail));
    if (search(text, stops).found()) break;
    const std::string last = decode(ids.last(1));
    if (text.size() >= longest + last.size() + margin) return {};
  }
  StopMatch match = search(decode(ids), stops);
  return match.found() ? match : StopMatch{};
}

}  // namespace troupe::engine::generate
