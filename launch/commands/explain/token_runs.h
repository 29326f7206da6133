// Sequences of tokens as texts of equal mask.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace troupe::launch::commands {

/// The text of token ids, special tokens included. Empty: the ids themselves are shown.
using TokenText = std::function<std::string(std::span<const std::int32_t>)>;

/// Successive tokens with the same weight in the loss.
struct TokenRun {
  std::span<const std::int32_t> ids;
  std::string text;  ///< valid UTF-8
  float weight = 0;
};

/// The runs of a sequence, or of a part of it. The text of a run is what the text grows by with its
/// tokens: tokens have no text of their own where a character consists of several. `weights`: as
/// many as ids, which outlive the result.
std::vector<TokenRun> token_runs(std::span<const std::int32_t> ids, std::span<const float> weights,
                                 const TokenText& text);

}  // namespace troupe::launch::commands
