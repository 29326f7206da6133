// What passes between a rule and its program: one JSON object a line, both ways (docs/rewards.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/roles/rules/rules.h"

namespace troupe::actors::rules {

/// {"id": 7, "prompt": "...", "completion": "...", "answer": ...} and a line end. Bytes that are
/// not UTF-8 (a completion may be cut inside a character) become U+FFFD.
std::string question_line(std::uint64_t id, const protocol::RewardRequest& request);

/// No reward is larger than this: what is, is a mistake of the program.
inline constexpr double largest_reward = 1e6;

struct Answer {
  std::int64_t id = 0;  ///< of the question that it answers
  Scored scored;
};

/// Reads {"id": 7, "reward": 0.5, "parts": {"style": 1}}: a finite reward, and at most 64 finite
/// parts. Other members are not looked at. Errc::bad_input.
Result<Answer> read_answer(std::string_view line);

}  // namespace troupe::actors::rules
