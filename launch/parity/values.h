// What a path computes for the tokens of texts, to the last bit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::launch::parity {

/// A prompt and its continuation by the model.
struct Text {
  std::vector<std::int32_t> tokens;
  std::int32_t prompt = 0;      ///< tokens of the prompt, at least one
  std::uint64_t sample_id = 0;  ///< random stream of the continuation
};

/// Values of a token given the tokens before it, at temperature 1; those are absent that the path
/// does not compute.
struct TokenValues {
  std::int32_t token = 0;
  float logp = 0;
  std::optional<float> lse = {};             ///< log-sum-exp of the logits
  std::optional<float> entropy = {};         ///< in nats
  std::optional<std::uint64_t> hidden = {};  ///< checksum of the hidden state before the token
};

/// Values of the tokens `first`, `first` + 1, ... of a text.
struct TextValues {
  std::int32_t first = 1;
  std::vector<TokenValues> tokens = {};
};

/// A row of an operation that computed log-probabilities.
struct HeadRow {
  std::int32_t target = 0;
  float logp = 0, lse = 0;
  std::optional<float> entropy = {};
  std::uint64_t hidden = 0;  ///< checksum of the row's hidden state; 0: unknown
};

/// What a path computed for all texts: one entry for each, or several times all of them.
struct PathValues {
  std::vector<TextValues> texts;
  std::vector<HeadRow> rows = {};  ///< of its operations, in their order
};

}  // namespace troupe::launch::parity
