// JSON lines between a rule and its program: one object per line in each direction
// (docs/rewards.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/roles/rules/rule.h"

namespace troupe::actors::rules {

/// Returns {"id": 7, "prompt": "...", "completion": "...", "answer": ..., "row": {...}, "messages":
/// ...} and a newline. Bytes that are not UTF-8 (a completion may end inside a character) become
/// U+FFFD.
std::string encode_request(std::uint64_t id, const protocol::RewardRequest& request);
/// The same for completions of one prompt, with "completions" and "completion_ids" as lists; none
/// asks whether the program works.
std::string encode_group(std::uint64_t id, std::span<const protocol::RewardRequest> group);

/// Largest absolute reward that is accepted.
inline constexpr double max_reward = 1e6;

struct Response {
  std::int64_t id = 0;         ///< id of the request
  std::vector<Scored> scored;  ///< of each completion
  std::string error;           ///< why the program cannot score them; empty: it has
};

/// Parses {"id": 7, "reward": 0.5, "parts": {"style": 1}}: a finite reward, or null for none, and
/// at most 64 finite parts; or {"id": 7, "error": "..."}. Other members are ignored.
/// Errc::bad_input.
Result<Response> parse_answer(std::string_view line);
/// Parses {"id": 7, "rewards": [0.5, null], "parts": [{"style": 1}, {}]}, with `count` rewards and,
/// if any, as many parts; or an error as above.
Result<Response> parse_group_answer(std::string_view line, std::size_t count);

}  // namespace troupe::actors::rules
