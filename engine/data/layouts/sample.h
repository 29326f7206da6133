// Sample: the normal form of a row before tokenization, whatever its layout was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/layouts/columns.h"
#include "engine/data/layouts/layout.h"
#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

struct TokenRow {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> labels;  ///< as long as ids; -100 is not trained on
};

/// Process rewards: the labels of the steps of a solution.
struct StepLabels {
  /// Texts of the steps; empty: the prompt is the whole text, with a placeholder after each step.
  std::vector<std::string> steps;
  std::vector<std::int32_t> classes;  ///< of each step: 0 is wrong, 1 is right, -1 has no label
  std::vector<std::string> values;    ///< the reward token of each placeholder
  /// Instead of values: the text with reward tokens in place of the placeholders.
  std::string labelled;
};

/// Prompt, completion and rejected completion are strings or arrays of messages ({"role",
/// "content", ...}): all messages, or all strings.
struct Sample {
  Json prompt;  ///< never trained on; null if there is none
  /// SFT: the trained part; in a conversation (prompt null) all its assistant messages. Pairs: the
  /// chosen completion.
  Json completion;
  Json rejected;                            ///< pairs
  Json tools;                               ///< for the chat template, or null
  Json answer;                              ///< prompts: reference answer for the verifier, or null
  Json columns;                             ///< prompts: the columns of the row but the prompt
  std::optional<TokenRow> tokens;           ///< instead of prompt and completion
  std::optional<TokenRow> rejected_tokens;  ///< instead of rejected
  std::optional<bool> desirable;            ///< unpaired data: the label
  std::optional<double> margin;  ///< pairs: how much better the chosen one is, if the row has it
  std::optional<StepLabels> step_labels;  ///< process rewards
  /// Names in the file of columns that this layout does not read; prompts: they are in `columns`.
  std::vector<std::string> unread;
};

/// Converts the row to its normal form. `options.layout` is not automatic. Errc::bad_input: file,
/// line, key, what was expected and found; also for a column that is not read and would change the
/// result, such as weights, masks, images and texts that belong to the prompt.
Result<Sample> to_sample(const Row& row, const LayoutOptions& options);

/// Returns the columns instruction, input, system and history as the prompt: messages for a chat,
/// else Stanford Alpaca's text. Errc::bad_input, without the location.
Result<Json> alpaca_prompt(const Columns& row, const LayoutOptions& options);

/// The column `system`, or `options.system`. Errc::bad_input, without the location.
Result<std::string> system_of(const Columns& row, const LayoutOptions& options);
/// Puts the column `system`, or `options.system`, before a prompt: a message, or a paragraph of a
/// text. A prompt that begins with a system message stays as it is; Errc::bad_input, without the
/// location, if the column has another one.
Result<> add_system(const Columns& row, const LayoutOptions& options, Json& prompt);

}  // namespace troupe::engine::data
