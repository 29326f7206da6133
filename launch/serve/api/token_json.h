// Log-probabilities of tokens in the forms of the OpenAI API.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/generate/generator.h"
#include "engine/generate/prompt_scores.h"
#include "launch/serve/api/served_model.h"

namespace troupe::launch::serve::api {

/// A token as it is reported.
struct ReportedToken {
  std::int32_t id = 0;
  std::optional<float> logp;  ///< absent for the first token of a prompt
  std::vector<engine::generate::Alternative> top;
};

/// Where the next token of a text stands.
struct TextPlace {
  bool begins = true;          ///< nothing stands before it: decoding may drop its space
  bool skips_special = true;   ///< special tokens are not part of the text
  std::size_t characters = 0;  ///< that have begun before (code points)

  /// The bytes that a token adds here; may be part of a character. "" without a tokenizer.
  std::string bytes_of(const ServedModel& model, std::int32_t id) const;
  /// The number of the character in which a token with these bytes begins.
  std::size_t offset_of(const std::string& bytes) const;
  /// Goes behind a token with these bytes.
  void pass(const std::string& bytes);
};

/// A token's text at its place, or "token_id:17". A special token that is not part of the text has
/// its own text, and part of a character is U+FFFD.
std::string token_name(const ServedModel& model, std::int32_t id, bool as_id,
                       const TextPlace& place);

// What follows is text: answers have up to millions of entries, and a tree of Json takes several
// times their memory.

/// {"tokens", "token_logprobs", "top_logprobs", "text_offset"} of /v1/completions. A token's
/// alternatives include the token itself.
class CompletionLogprobs {
 public:
  /// `place`: of the first token.
  explicit CompletionLogprobs(const TextPlace& place = {}) : place_(place) {}
  void add(const ServedModel& model, const ReportedToken& token, bool as_ids);
  /// Behind the tokens.
  const TextPlace& place() const { return place_; }
  /// Appends the object with the tokens of `before`, which may be nullptr, in front of these.
  void append_to(std::string& text, const CompletionLogprobs* before) const;

 private:
  std::string names_, logps_, tops_, offsets_;  // items with commas between them
  TextPlace place_;
};

/// {"content": [{"token", "logprob", "bytes", "top_logprobs"}]} of /v1/chat/completions.
/// `place`: of the first token.
std::string chat_logprobs(const ServedModel& model, std::span<const ReportedToken> tokens,
                          bool as_ids, TextPlace place);

/// vLLM's prompt_logprobs: null, then {"ID": {"logprob", "rank", "decoded_token"}} per token, with
/// that many alternatives. Throws Failure (Errc::internal) for scores of another prompt.
std::string prompt_logprobs(const ServedModel& model, std::span<const std::int32_t> prompt,
                            const engine::generate::PromptScores& scores, int alternatives,
                            TextPlace place);

/// Throws Failure (Errc::internal) unless there is a score, with alternatives if `top`, for each of
/// the tokens: scores are absent if the sequence ended before the prompt was computed.
void check_scores(const engine::generate::PromptScores& scores, std::size_t tokens, bool top);

std::string ids_text(std::span<const std::int32_t> ids);
Json ids_json(std::span<const std::int32_t> ids);

}  // namespace troupe::launch::serve::api
