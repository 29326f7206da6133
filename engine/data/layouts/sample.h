// Sample: the normal form of a row, whatever its layout was, before tokenisation; and the handlers
// that make it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/layouts/columns.h"
#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

/// What rows are read for: the same row means different things to different algorithms.
enum class Purpose { sft, pairs, unpaired, prompts, steps };

enum class Layout {
  automatic,  ///< found from the keys of the first row
  token_ids,  ///< input_ids, labels; for pairs chosen_input_ids, chosen_labels, rejected_input_ids,
              ///< rejected_labels
  messages,  ///< messages (role, content), or ShareGPT's conversations (from, value); tools, system
  prompt_completion,  ///< prompt, completion (or response, answer): strings or lists of messages
  question_answer,    ///< question, answer (GSM8K); problem, solution
  alpaca,             ///< instruction, input, output, system, history
  text,               ///< text: the whole of it is trained on
  pairwise,  ///< chosen, rejected, with a prompt, instruction, conversations, or the prefix that
             ///< both have in common (HH-RLHF)
  steps,     ///< prompt, completions (or steps), and labels (TRL), mistake_index or error_steps: a
             ///< solution's steps, judged
  placeholders,   ///< input with a placeholder behind each step; value: a reward token for each
                  ///< (MindSpeed), or label: the same text with reward tokens in their places
                  ///< (Math-Shepherd)
  prm800k,        ///< question.problem, label.steps: as PRM800K has them
  prompt_answer,  ///< prompt (string or messages), question, problem or instruction; answer,
                  ///< ground_truth or reward_model.ground_truth
};

const char* to_string(Layout layout);
/// Errc::usage, naming the known ones, when there is no such layout.
Result<Layout> layout_from(std::string_view name);

/// Whether texts that are not lists of messages go through the model's chat template, as one user
/// message.
enum class ChatUse {
  automatic,  ///< alpaca rows do when the model has a template; other plain strings stay as they
              ///< are (as TRL has it)
  always,
  never,
};

struct TokenRow {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> labels;  ///< as long as ids; -100 is not trained on
};

/// Process rewards: what the data says of a solution's steps.
struct StepLabels {
  std::vector<std::string> steps;  ///< the steps' texts; empty: the prompt is the whole text, with
                                   ///< a placeholder behind each step
  std::vector<std::int32_t>
      classes;  ///< of each of `steps`: 0 is wrong, 1 is right, -1 is not judged
  std::vector<std::string> values;  ///< the reward token of each placeholder
  std::string labelled;             ///< instead of them: the text again, with reward tokens in the
                                    ///< placeholders' places
};

/// `prompt`, `completion`, `rejected` are a string or an array of messages ({"role", "content",
/// ...}); all messages, or all strings.
struct Sample {
  Json prompt;      ///< never trained on; null when there is none
  Json completion;  ///< SFT: what is trained on; in a dialogue (prompt null) every assistant turn
                    ///< of it. Pairs: the chosen one
  Json rejected;    ///< pairs
  Json tools;       ///< for the chat template, or null
  Json answer;      ///< prompts: what a verifier compares with, or null
  Json columns;     ///< prompts: the row's other columns
  std::optional<TokenRow> tokens;           ///< instead of prompt and completion
  std::optional<TokenRow> rejected_tokens;  ///< instead of rejected
  std::optional<bool> desirable;            ///< answers without pairs: what the label says
  std::optional<double>
      margin;  ///< pairs: by how much the chosen one is better, where the row says
  std::optional<StepLabels> judged;  ///< process rewards
};

struct LayoutOptions {
  Purpose purpose = Purpose::sft;
  Layout layout = Layout::automatic;
  std::map<std::string, std::string>
      columns;  ///< our name to the file's: {"prompt": "question"}; dots go into objects
  Tags tags;
  ChatUse chat = ChatUse::automatic;
  bool chat_template = true;    ///< the model has one
  std::int64_t vocabulary = 0;  ///< of rows that are ids; 0: not checked
};

/// Errc::usage when rows of this layout are not for this purpose.
Result<> check_layout(Layout layout, Purpose purpose);

/// The layout that fits the row's keys. Errc::usage: the row's keys and the layouts that there are.
Result<Layout> detect_layout(const Row& row, const LayoutOptions& options);

/// The row in its normal form. `options.layout` is not automatic. Errc::bad_input: file, line, key,
/// what was expected and found.
Result<Sample> to_sample(const Row& row, const LayoutOptions& options);

}  // namespace troupe::engine::data
