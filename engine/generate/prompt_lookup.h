// Prompt lookup (Saxena 2023, github.com/apoorvumang/prompt-lookup-decoding): a draft of the next
// tokens of a sequence from an earlier occurrence of its last ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::engine::generate {

/// At most `count` tokens that may follow `tokens` [T]: those that followed the latest earlier
/// occurrence of the last three tokens or, without one, of the last two. Empty without either.
std::vector<std::int32_t> look_up_draft(std::span<const std::int32_t> tokens, std::size_t count);

}  // namespace troupe::engine::generate
