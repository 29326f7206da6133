// Rows of process reward models in their published forms, and their encoding as tokens with a class
// at the end of each step.
#pragma once

#include "engine/data/layouts/columns.h"
#include "engine/data/layouts/encode.h"

namespace troupe::engine::data {

/// {prompt (question, problem, input), completions (steps): [text]} with labels: [true, false,
/// 0, 1...] as TRL has it; mistake_index: the first wrong step, counted from 0, or null; the
/// steps after it have no label (BIG-Bench-Mistake); or error_steps: the wrong steps, counted from
/// 1 (PRMBench). Errc::bad_input, without the location.
Result<Sample> step_sample(const Columns& row, const LayoutOptions& options);
/// {input: text with a placeholder after each step} with value: ["+", "-"...] (MindSpeed), or with
/// label: the same text with reward tokens in place of the placeholders (Math-Shepherd).
/// Errc::bad_input.
Result<Sample> placeholder_sample(const Columns& row, const LayoutOptions& options);
/// A row of PRM800K. Each step is the chosen completion, else the human completion, else the first
/// one, which ends the solution. Ratings 1 and 0 (neutral) are right, -1 is wrong. Errc::bad_input.
Result<Sample> prm800k_sample(const Columns& row, const LayoutOptions& options);

/// Errc::usage if a text is not exactly one token, or there are fewer than two reward tokens; the
/// message names the configuration key (prm.placeholder, prm.reward_tokens).
Result<StepTokens> find_step_tokens(const std::string& placeholder,
                                    const std::vector<std::string>& reward_tokens,
                                    const TextEncoder& encoder);

/// Tokenizes a solution as TRL's PRMTrainer: the prompt with the tokenizer's special tokens, then
/// each step and its separator, each tokenized separately. `ends[k]` is the last token of the
/// separator after step k. Errc::bad_input.
struct StepTokenRow {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> ends;  ///< as many as steps
};
Result<StepTokenRow> tokenize_steps(std::string_view prompt, const std::vector<std::string>& steps,
                                    const std::string& separator, const TextEncoder& encoder);

/// nullopt if no label is left after truncation to max_length. Errc::bad_input; Errc::usage if the
/// form of the rows does not match options.steps.
Result<std::optional<StepExample>> encode_steps(const Sample& sample, const TextEncoder& encoder,
                                                const EncodeOptions& options);

}  // namespace troupe::engine::data
