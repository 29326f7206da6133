// From samples to token sequences: prompts masked, assistant turns trained, ends appended, lengths cut. Semantics: TRL's SFT and DPO
// trainers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/sample.h"
#include "engine/data/text_encoder.h"

namespace troupe::engine::data {

/// A token sequence and the weight of each token in the loss (0 or 1, or a turn's own `loss_weight`).
struct SftExample {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;  ///< as long as ids
  bool truncated = false;      ///< the row was longer than max_length
};

struct PairExample {
  SftExample chosen, rejected;
};

struct PromptRow {
  std::vector<std::int32_t> ids;
  std::string text;  ///< what `ids` were made of; empty for rows of ids
  Json answer;       ///< for the verifier, or null
  Json columns;      ///< the row's other columns, an object
};

struct EncodeOptions {
  std::int64_t max_length = 0;  ///< tokens of a sequence, the front is kept; 0: no limit. A longer *prompt* of PromptRow is refused instead
  bool train_on_prompt = false;  ///< SFT: the whole sequence has weight 1
  bool append_end_token = true;  ///< to completions of plain strings (chat templates write their own)
};

/// nullopt: nothing trainable is left after the cut to max_length. Errors: Errc::bad_input (this row), Errc::unsupported (conversations
/// without a chat template).
Result<std::optional<SftExample>> encode_sft(const Sample& sample, const TextEncoder& encoder, const EncodeOptions& options);
/// nullopt: one of the two has nothing trainable left.
Result<std::optional<PairExample>> encode_pair(const Sample& sample, const TextEncoder& encoder, const EncodeOptions& options);
/// nullopt: longer than max_length.
Result<std::optional<PromptRow>> encode_prompt(const Sample& sample, const TextEncoder& encoder, const EncodeOptions& options);

}  // namespace troupe::engine::data
