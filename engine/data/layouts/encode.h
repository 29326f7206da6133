// Encoding of samples as token sequences: prompts are masked, assistant messages trained, end
// tokens appended, sequences truncated. Semantics: TRL's SFT and DPO trainers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/layouts/sample.h"
#include "engine/data/layouts/text_encoder.h"

namespace troupe::engine::data {

/// A token sequence and the weight of each token in the loss (0 or 1, or the `loss_weight` of a
/// message).
struct SftExample {
  static constexpr Purpose purpose = Purpose::sft;
  std::vector<std::int32_t> ids;
  std::vector<float> weights;   ///< as long as ids
  std::int64_t cut_tokens = 0;  ///< tokens of the row beyond max_length, which are dropped
};

struct PairExample {
  static constexpr Purpose purpose = Purpose::pairs;
  SftExample chosen, rejected;
  std::optional<float> margin = {};  ///< how much better the chosen one is, if the row has it
};

/// A completion labelled desirable or undesirable (KTO). Not truncated yet: a prompt is also
/// combined with the completions of other prompts.
struct UnpairedExample {
  static constexpr Purpose purpose = Purpose::unpaired;
  std::vector<std::int32_t> prompt, answer;
  std::vector<float> weights;  ///< as long as answer
  bool desirable = false;
};

struct PromptRow {
  static constexpr Purpose purpose = Purpose::prompts;
  std::vector<std::int32_t> ids;
  std::string text;  ///< the text of `ids`; empty for rows of ids
  Json answer;       ///< reference answer for the verifier, or null
  Json columns;      ///< the columns of the row but the prompt, an object
  Json messages;     ///< of the prompt, or null if it is a text or ids
};

/// A solution with labelled steps.
struct StepExample {
  static constexpr Purpose purpose = Purpose::steps;
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> classes;  ///< per token: the class of the step that ends here, else -1
  std::int64_t cut_tokens = 0;        ///< tokens of the row beyond max_length, which are dropped
};

/// The tokens of rows with placeholders (found by steps.h). Class c is reward_ids[c].
struct StepTokens {
  std::string placeholder_text;
  std::int32_t placeholder = 0;
  std::vector<std::string> reward_texts;
  std::vector<std::int32_t> reward_ids;
};

/// Tokenization of the rows of a process reward model.
struct StepOptions {
  std::string separator = "\n";      ///< after each step; its last token carries the label
  bool last_step_only = false;       ///< ignore the labels of the other steps
  std::int32_t classes = 2;          ///< number of classes of rows with labels
  std::optional<StepTokens> tokens;  ///< for rows with placeholders; empty: rows with labels
};

/// Answers that get the end token: those of plain text, or all that do not end with it (as TRL's
/// add_eos_token_if_needed).
enum class EndToken { text, always };
constexpr std::array<std::string_view, 2> names_of(EndToken) {
  return {"text", "always"};
}

/// Rows that get the begin token: those of plain text where the tokenizer adds it, or all that do
/// not begin with it (as TRL's add_bos_token_if_needed).
enum class BeginToken { text, always };
constexpr std::array<std::string_view, 2> names_of(BeginToken) {
  return {"text", "always"};
}

/// Where the two answers of a pair begin if tokens cross the end of the prompt: each at its own
/// first token that is not the prompt's, or both where the first of them does (as TRL's DPO).
enum class AnswerStart { own, common };
constexpr std::array<std::string_view, 2> names_of(AnswerStart) {
  return {"own", "common"};
}

struct EncodeOptions {
  /// Maximum number of tokens of a sequence; longer ones are truncated at the end, but a longer
  /// *prompt* of PromptRow is skipped. 0: no limit.
  std::int64_t max_length = 0;
  bool train_on_prompt = false;  ///< SFT: the whole sequence has weight 1
  /// Append the end token to completions of plain strings (chat templates write their own).
  bool append_end_token = true;
  EndToken end_token = EndToken::text;
  BeginToken begin_token = BeginToken::text;
  AnswerStart answer_start = AnswerStart::own;
  /// Skip pairs longer than max_length instead of truncating them (reward models: a truncated
  /// completion has no meaningful score).
  bool skip_longer = false;
  /// Split rows of the text layout that are longer than max_length into several examples instead of
  /// truncating them.
  bool chunk = false;
  StepOptions steps;

  static void each_token_field(auto& self, auto&& field) {
    field(
        "begin_token", self.begin_token,
        "begin token of rows: text: as the tokenizer adds it to plain text, and the chat template "
        "writes it in conversations; always: before every row that does not begin with it");
    field("answer_start", self.answer_start,
          "where the answers of a pair begin if a token crosses the end of the prompt: own: each "
          "with its first token that is not the prompt's; common: both where the first of them "
          "does");
    field("end_token", self.end_token,
          "end token of answers: text: after plain text, not after conversations, which end as the "
          "chat template ends them; always: after every row that does not end with it");
  }
};

/// nullopt if no trainable token is left after truncation to max_length. Errc::bad_input (this
/// row); Errc::unsupported (conversations without a chat template).
Result<std::optional<SftExample>> encode_sft(const Sample& sample, const TextEncoder& encoder,
                                             const EncodeOptions& options);
/// The row of a text document: as encode_sft(), but with options.chunk a document longer than
/// max_length becomes several examples. Each but the first begins with the last token of the one
/// before it, which has weight 0, so every token that is trained on in the whole document is
/// trained on in exactly one example. Empty if no trainable token is left.
Result<std::vector<SftExample>> encode_document(const Sample& sample, const TextEncoder& encoder,
                                                const EncodeOptions& options);
/// Errc::bad_input if an id is outside the vocabulary of the model.
Result<> check_vocabulary(const std::vector<std::int32_t>& ids, const TextEncoder& encoder);
/// nullopt if one of the two has no trainable token left, or is longer than max_length with
/// skip_longer.
Result<std::optional<PairExample>> encode_pair(const Sample& sample, const TextEncoder& encoder,
                                               const EncodeOptions& options);
/// nullopt if longer than max_length.
Result<std::optional<PromptRow>> encode_prompt(const Sample& sample, const TextEncoder& encoder,
                                               const EncodeOptions& options);

}  // namespace troupe::engine::data
