// Layout: which columns the rows of a data file have, and how that follows from the keys of a row.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/data/layouts/columns.h"
#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

/// Use of the rows: the same row is read differently for different algorithms.
enum class Purpose { sft, pairs, unpaired, prompts, steps };

enum class Layout {
  automatic,  ///< detected from the keys of the first row
  /// input_ids, labels; for pairs chosen_input_ids, chosen_labels, rejected_input_ids,
  /// rejected_labels.
  token_ids,
  /// messages (role, content), or ShareGPT's conversations (from, value); tools, system.
  messages,
  prompt_completion,  ///< prompt, completion (or response, answer): strings or lists of messages
  question_answer,    ///< question, answer (GSM8K); problem, solution
  alpaca,             ///< instruction, input, output, system, history
  text,               ///< text: the whole of it is trained on
  /// chosen, rejected, with a prompt, instruction, conversations, or the prefix that both have in
  /// common (HH-RLHF).
  pairwise,
  /// A solution with labelled steps: prompt, completions (or steps), and labels (TRL),
  /// mistake_index or error_steps.
  steps,
  /// input with a placeholder after each step; value: a reward token for each (MindSpeed), or
  /// label: the same text with reward tokens in place of the placeholders (Math-Shepherd).
  placeholders,
  prm800k,  ///< question.problem, label.steps (PRM800K)
  /// prompt (string or messages), question, problem or instruction; answer, ground_truth or
  /// reward_model.ground_truth.
  prompt_answer,
};

constexpr std::array<std::string_view, 12> names_of(Layout) {
  return {"auto", "token_ids", "messages", "prompt_completion", "question_answer", "alpaca",
          "text", "pairwise",  "steps",    "placeholders",      "prm800k",         "prompt_answer"};
}

/// Whether plain strings are rendered by the chat template, as one user message.
enum class ChatUse {
  /// Alpaca rows, if the model has a template; other plain strings are unchanged (as in TRL).
  automatic,
  always,
  never,
};
constexpr std::array<std::string_view, 3> names_of(ChatUse) {
  return {"auto", "always", "never"};
}

struct LayoutOptions {
  Purpose purpose = Purpose::sft;
  Layout layout = Layout::automatic;
  /// Troupe's name to the file's: {"prompt": "question"}; dots descend into objects.
  std::map<std::string, std::string> columns;
  Tags tags;
  ChatUse chat = ChatUse::automatic;
  bool chat_template = true;    ///< the model has one
  std::int64_t vocabulary = 0;  ///< of rows that are ids; 0: not checked
  /// System message of rows that have none, neither as a column nor as a message.
  std::string system = {};
};

/// Errc::usage if the layout does not fit the purpose.
Result<> check_layout(Layout layout, Purpose purpose);
/// Whether rows of this layout have a prompt to which a system message can be added.
bool takes_system(Layout layout);

/// Detects the layout from the keys of the row. Errc::bad_input, with the keys and the known
/// layouts.
Result<Layout> detect_layout(const Row& row, const LayoutOptions& options);

}  // namespace troupe::engine::data
