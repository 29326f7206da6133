// Steps: the rows of process reward models, in the two ways that they are published, and as tokens
// with a class where a step is judged.
#pragma once

#include "engine/data/encode.h"
#include "engine/data/layouts/columns.h"

namespace troupe::engine::data {

/// {prompt (question, problem, input), completions (steps): [text]} with labels: [true, false,
/// 0, 1...] as TRL has it; mistake_index: the first wrong step from 0, null where none is, later
/// ones not judged (BIG-Bench-Mistake); or error_steps: the wrong ones from 1 (PRMBench).
/// Errc::bad_input, without the place.
Result<Sample> step_sample(const Columns& row, const LayoutOptions& options);
/// {input: text with a placeholder behind each step} with value: ["+", "-"...] as MindSpeed has it,
/// or with label: the text with these in the placeholders' places, as Math-Shepherd has it.
/// Errc::bad_input.
Result<Sample> placeholder_sample(const Columns& row, const LayoutOptions& options);
/// A row of PRM800K: of each step the completion that was chosen; where none was, the human's, or
/// the first, with which it ends. Rated 1 and 0 (neutral) is right, -1 is wrong. Errc::bad_input.
Result<Sample> prm800k_sample(const Columns& row, const LayoutOptions& options);

/// Errc::usage: a text that is not exactly one token of this tokenizer, or fewer than two reward
/// tokens; the message names the run file's key (prm.placeholder, prm.reward_tokens).
Result<StepTokens> find_step_tokens(const std::string& placeholder,
                                    const std::vector<std::string>& reward_tokens,
                                    const TextEncoder& encoder);

/// A solution's tokens as TRL's PRMTrainer makes them: the prompt with the tokenizer's own special
/// tokens, then each step and its separator, every piece tokenised alone. `ends[k]` is the
/// separator's last token behind step k. Errc::bad_input.
struct StepTokenRow {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> ends;  ///< as many as steps
};
Result<StepTokenRow> tokenise_steps(std::string_view prompt, const std::vector<std::string>& steps,
                                    const std::string& separator, const TextEncoder& encoder);

/// nullopt: nothing that is judged is left within max_length (the front is kept). Errc::bad_input;
/// Errc::usage where the rows are of one dialect and options.steps of the other.
Result<std::optional<StepExample>> encode_steps(const Sample& sample, const TextEncoder& encoder,
                                                const EncodeOptions& options);

}  // namespace troupe::engine::data
