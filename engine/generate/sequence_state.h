// SequenceState: an unfinished request of a generator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/generate/generator.h"
#include "engine/generate/output_constraint.h"

namespace troupe::engine::generate {

struct SequenceState {
  Request request;
  std::vector<std::int32_t> tokens;      ///< prompt and output
  std::vector<std::int32_t> proposed;    ///< tokens and a draft of the next ones, during a step
  std::vector<std::int32_t> end_tokens;  ///< end and stop tokens
  std::int32_t limit = 0;                ///< maximum tokens of prompt and output
  OutputConstraint constraint;
  Generation result;
  PromptScores prompt_scores;   ///< of what is computed so far
  bool prompt_is_done = false;  ///< and its scores were reported
  /// The draft model has not computed the token before the last one.
  bool draft_is_behind = false;

  /// At most `most` tokens: the last token of a sequence is sampled and never computed.
  std::int32_t draft_tokens(std::int32_t most) const {
    return std::clamp(limit - static_cast<std::int32_t>(tokens.size()) - 1, 0, most);
  }
};

/// By order of arrival.
using SequenceStates = std::map<std::uint64_t, SequenceState>;

}  // namespace troupe::engine::generate
