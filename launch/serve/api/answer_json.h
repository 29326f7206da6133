// AnswerJson: responses and stream chunks of /v1/completions and /v1/chat/completions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "launch/serve/api/generation_request.h"
#include "launch/serve/api/message/message_part.h"
#include "launch/serve/api/model_set.h"
#include "launch/serve/api/token_json.h"

namespace troupe::launch::api {

/// A choice, or a piece of it in a stream.
struct ChoicePart {
  int index = 0;
  std::size_t prompt = 0;  ///< of GenerationRequest::prompts
  bool first = true;       ///< nothing of this choice was sent before
  std::string text;
  std::string reasoning;              ///< of a message, whose content is the text
  std::vector<CallPart> calls;        ///< of a message
  std::vector<ReportedToken> tokens;  ///< of the text; with the prompt's in the first part of echo
  std::size_t offset = 0;             ///< characters before the tokens
  std::vector<std::int32_t> ids;      ///< generated tokens
  std::vector<std::uint64_t> versions;
  std::string finish;  ///< finish_reason; "" while more follows
  Json stop_reason;    ///< the stop string or stop token that ended it, or null
};

struct Usage {
  std::int64_t prompt_tokens = 0, completion_tokens = 0;
  std::int64_t cached_tokens = 0;  ///< of the prompts, in the prefix cache
};

class AnswerJson {
 public:
  /// `request` and `served` must outlive this. `id`: of the HTTP request.
  AnswerJson(const GenerationRequest& request, const Served& served, const std::string& id);

  /// `scores`: by prompt, empty unless prompt_logprobs is wanted.
  Json response(std::span<const ChoicePart> choices, const Usage& usage,
                std::span<const engine::generate::PromptScores> scores) const;
  /// A chunk of a stream; `usage` with continuous_usage_stats.
  Json chunk(const ChoicePart& part, const Usage& usage) const;
  /// The last chunk with include_usage.
  Json usage_chunk(const Usage& usage) const;

 private:
  bool chat() const { return request_.endpoint == Endpoint::chat; }
  Json head(const char* object) const;
  Json logprobs(const ChoicePart& part) const;
  Json choice(const ChoicePart& part, bool delta) const;
  void add_content(Json& choice, const ChoicePart& part, bool delta) const;
  Json message(const ChoicePart& part) const;
  Json delta(const ChoicePart& part) const;
  Json tool_calls(const ChoicePart& part, bool delta) const;
  std::string call_id(int choice, int call) const;

  const GenerationRequest& request_;
  const Served& served_;
  std::string id_;
  std::int64_t created_;
};

}  // namespace troupe::launch::api
