// Prompt lookup (Saxena 2023, github.com/apoorvumang/prompt-lookup-decoding): a draft of the next
// tokens of a sequence from an earlier occurrence of its last ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/generate/scheduler.h"
#include "engine/generate/sequence_state.h"

namespace troupe::engine::generate {

/// At most `count` tokens that may follow `tokens` [T]: those that followed the latest earlier
/// occurrence of the last three tokens or, without one, of the last two. Empty without either.
std::vector<std::int32_t> look_up_draft(std::span<const std::int32_t> tokens, std::size_t count);

/// Adds rows of drafts of at most `count` tokens to the plan, whose tokens are in
/// SequenceState::proposed. Returns the number of drafted tokens.
std::int64_t propose_by_lookup(ScheduledStep& plan, Scheduler& scheduler, SequenceStates& sequences,
                               std::int32_t count);

}  // namespace troupe::engine::generate
