// JSON lines between a rule and its program: one object per line in each direction
// (docs/rewards.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/roles/rules/rule.h"

namespace troupe::actors::rules {

/// Returns {"id": 7, "prompt": "...", "completion": "...", "answer": ...} and a newline. Bytes that
/// are not UTF-8 (a completion may end inside a character) become U+FFFD.
std::string encode_request(std::uint64_t id, const protocol::RewardRequest& request);

/// Largest absolute reward that is accepted.
inline constexpr double max_reward = 1e6;

struct Response {
  std::int64_t id = 0;  ///< id of the request
  Scored scored;
};

/// Parses {"id": 7, "reward": 0.5, "parts": {"style": 1}}: a finite reward and at most 64 finite
/// parts. Other members are ignored. Errc::bad_input.
Result<Response> parse_answer(std::string_view line);

}  // namespace troupe::actors::rules
