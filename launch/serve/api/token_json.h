// Log-probabilities of tokens in the forms of the OpenAI API.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/generate/generator.h"
#include "engine/generate/prompt_scores.h"
#include "launch/serve/api/served_model.h"

namespace troupe::launch::api {

/// A token as it is reported.
struct ReportedToken {
  std::int32_t id = 0;
  std::optional<float> logp;  ///< absent for the first token of a prompt
  std::vector<engine::generate::Alternative> top;
};

/// The text of a token alone, or "token_id:17".
std::string token_name(const ServedModel& model, std::int32_t id, bool as_id);

/// Number of characters (code points) of valid UTF-8.
std::size_t code_points(std::string_view text);

// What follows is text: answers have up to millions of entries, and a tree of Json takes several
// times their memory.

/// {"tokens", "token_logprobs", "top_logprobs", "text_offset"} of /v1/completions. A token's
/// alternatives include the token itself.
class CompletionLogprobs {
 public:
  /// `offset`: characters before the tokens.
  explicit CompletionLogprobs(std::size_t offset = 0) : offset_(offset) {}
  void add(const ServedModel& model, const ReportedToken& token, bool as_ids);
  /// Characters before and of the tokens.
  std::size_t offset() const { return offset_; }
  /// Appends the object with the tokens of `before`, which may be nullptr, in front of these.
  void append_to(std::string& text, const CompletionLogprobs* before) const;

 private:
  std::string names_, logps_, tops_, offsets_;  // items with commas between them
  std::size_t offset_ = 0;
};

/// {"content": [{"token", "logprob", "bytes", "top_logprobs"}]} of /v1/chat/completions.
std::string chat_logprobs(const ServedModel& model, std::span<const ReportedToken> tokens,
                          bool as_ids);

/// vLLM's prompt_logprobs: null, then {"ID": {"logprob", "rank", "decoded_token"}} per token, with
/// that many alternatives. The rank of a token that is not among its alternatives is null. Throws
/// Failure (Errc::internal) for scores of another prompt.
std::string prompt_logprobs(const ServedModel& model, std::span<const std::int32_t> prompt,
                            const engine::generate::PromptScores& scores, int alternatives);

/// Throws Failure (Errc::internal) unless there is a score, with alternatives if `top`, for each of
/// the tokens: scores are absent if the sequence ended before the prompt was computed.
void check_scores(const engine::generate::PromptScores& scores, std::size_t tokens, bool top);

std::string ids_text(std::span<const std::int32_t> ids);
Json ids_json(std::span<const std::int32_t> ids);

}  // namespace troupe::launch::api
