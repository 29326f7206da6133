// GenerationRequest: what /v1/completions and /v1/chat/completions ask for, read from their JSON.
// Names, defaults and meaning are those of the OpenAI API, and of vLLM for its additions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/constraints/token_table.h"
#include "engine/generate/sampling_params.h"
#include "launch/serve/api/message/message_reader.h"
#include "launch/serve/api/served_model.h"

namespace troupe::launch::serve::api {

enum class Endpoint { completion, chat };

/// Bounds of one request.
inline constexpr int max_choices = 128, max_alternatives = 20, max_reported_tokens = 128;
inline constexpr std::size_t max_sequences = 1024;

struct GenerationRequest {
  Endpoint endpoint = Endpoint::completion;
  std::vector<std::vector<std::int32_t>> prompts;  ///< one for a conversation
  /// Texts of the prompts where the request has them; for echo.
  std::vector<std::string> prompt_texts;

  int choices = 1;  ///< n, per prompt
  int best_of = 1;  ///< sequences per prompt, of which the n most likely are returned
  /// max_new_tokens of 1 stands for max_tokens 0, too: see `generates`.
  engine::generate::SamplingParams params;
  /// allowed_token_ids; nullptr: all tokens.
  std::shared_ptr<const engine::constraints::TokenMask> allowed;
  OutputConstraint constraint;  ///< of the outputs
  /// Absent max_tokens of a conversation: as many as the context holds. By prompt.
  std::vector<std::int32_t> max_tokens;
  bool generates = true;  ///< false: max_tokens is 0

  bool stream = false, include_usage = false, continuous_usage = false;
  bool echo = false;
  bool logprobs = false;     ///< report log-probabilities, with params.top_logprobs others
  int prompt_logprobs = -1;  ///< alternatives per token of the prompt; -1: not reported
  /// logprob_token_ids: the alternatives of each token, instead of params.top_logprobs others.
  std::vector<std::int32_t> reported;
  bool tokens_as_ids = false;  ///< "token_id:17" instead of the token's text
  bool return_token_ids = false, return_weight_versions = false;
  /// Of the largest return_sampling_mask of a token; 0: it is not reported.
  std::int64_t mask_bytes = 0;
  bool include_stop = false;  ///< include_stop_str_in_output
  bool skip_special = true;
  std::string cache_salt;  ///< requests with different ones share no cached prompts

  MessageFormat message;  ///< chat: the parts of an output
  bool include_reasoning = true;

  /// Of a generated token, in the answer.
  int alternatives() const {
    return reported.empty() ? params.top_logprobs : static_cast<int>(reported.size());
  }
  bool scores_prompt() const { return prompt_logprobs >= 0 || (echo && logprobs); }
};

/// Fields that the server ignored, for its log.
using UnknownFields = std::vector<std::string>;

/// Reads a body. Throws ApiFailure; also for prompts that do not fit the context.
GenerationRequest read_generation_request(const Json& body, Endpoint endpoint,
                                          const ServedModel& model, UnknownFields& unknown);

}  // namespace troupe::launch::serve::api
