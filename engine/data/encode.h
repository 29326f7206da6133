// From samples to token sequences: prompts masked, assistant turns trained, ends appended, lengths
// cut. Semantics: TRL's SFT and DPO trainers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/layouts/sample.h"
#include "engine/data/text_encoder.h"

namespace troupe::engine::data {

/// A token sequence and the weight of each token in the loss (0 or 1, or a turn's own
/// `loss_weight`).
struct SftExample {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;  ///< as long as ids
  bool truncated = false;      ///< the row was longer than max_length
};

struct PairExample {
  SftExample chosen, rejected;
  std::optional<float> margin = {};  ///< by how much the chosen one is better, where the row says
};

/// An answer that is judged by itself, good or bad (KTO). Not cut to a maximum length yet: a prompt
/// also stands before other prompts' answers.
struct UnpairedExample {
  std::vector<std::int32_t> prompt, answer;
  std::vector<float> weights;  ///< as long as answer
  bool desirable = false;
};

struct PromptRow {
  std::vector<std::int32_t> ids;
  std::string text;  ///< what `ids` were made of; empty for rows of ids
  Json answer;       ///< for the verifier, or null
  Json columns;      ///< the row's other columns, an object
};

/// A solution whose steps are judged.
struct StepExample {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t>
      classes;  ///< as long as ids: the class of the step that the token ends, -1 elsewhere
  bool truncated = false;  ///< the row was longer than max_length
};

/// The placeholder dialect's tokens (steps.h finds them). Class c is reward_ids[c].
struct StepTokens {
  std::string placeholder_text;
  std::int32_t placeholder = 0;
  std::vector<std::string> reward_texts;
  std::vector<std::int32_t> reward_ids;
};

/// How the rows of a process reward model become tokens.
struct StepOptions {
  std::string separator = "\n";      ///< behind each step; the step is judged at its last token
  bool last_step_only = false;       ///< the other steps are not judged
  std::int32_t classes = 2;          ///< of rows with labels
  std::optional<StepTokens> tokens;  ///< of rows with placeholders; without them rows have labels
};

struct EncodeOptions {
  std::int64_t max_length = 0;   ///< tokens of a sequence, the front is kept; 0: no limit. A longer
                                 ///< *prompt* of PromptRow is refused instead
  bool train_on_prompt = false;  ///< SFT: the whole sequence has weight 1
  bool append_end_token =
      true;  ///< to completions of plain strings (chat templates write their own)
  bool leave_out_longer = false;  ///< pairs longer than max_length are left out, not cut (reward
                                  ///< models: a score of half an answer is none)
  StepOptions steps;
};

/// nullopt: nothing trainable is left after the cut to max_length. Errors: Errc::bad_input (this
/// row), Errc::unsupported (conversations without a chat template).
Result<std::optional<SftExample>> encode_sft(const Sample& sample, const TextEncoder& encoder,
                                             const EncodeOptions& options);
/// Errc::bad_input: a token of the tokenizer that the model has no row for.
Result<> check_vocabulary(const std::vector<std::int32_t>& ids, const TextEncoder& encoder);
/// nullopt: one of the two has nothing trainable left, or is longer than max_length where such
/// pairs are left out.
Result<std::optional<PairExample>> encode_pair(const Sample& sample, const TextEncoder& encoder,
                                               const EncodeOptions& options);
/// nullopt: longer than max_length.
Result<std::optional<PromptRow>> encode_prompt(const Sample& sample, const TextEncoder& encoder,
                                               const EncodeOptions& options);

}  // namespace troupe::engine::data
