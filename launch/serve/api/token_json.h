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

/// {"tokens", "token_logprobs", "top_logprobs", "text_offset"} of /v1/completions. A token's
/// alternatives include the token itself. `offset`: characters before the tokens.
Json completion_logprobs(const ServedModel& model, std::span<const ReportedToken> tokens,
                         bool as_ids, std::size_t offset);

/// {"content": [{"token", "logprob", "bytes", "top_logprobs"}]} of /v1/chat/completions.
Json chat_logprobs(const ServedModel& model, std::span<const ReportedToken> tokens, bool as_ids);

/// vLLM's prompt_logprobs: null, then {"ID": {"logprob", "rank", "decoded_token"}} per token, with
/// that many alternatives. The rank of a token that is not among its alternatives is null.
Json prompt_logprobs(const ServedModel& model, std::span<const std::int32_t> prompt,
                     const engine::generate::PromptScores& scores, int alternatives);

Json ids_json(std::span<const std::int32_t> ids);

}  // namespace troupe::launch::api
