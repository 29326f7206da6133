// AnswerJson: responses and stream chunks of /v1/completions and /v1/chat/completions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/base/sets/id_sets.h"
#include "launch/serve/api/generation_request.h"
#include "launch/serve/api/message/message_part.h"
#include "launch/serve/api/model_set.h"
#include "launch/serve/api/token_json.h"

namespace troupe::launch::serve::api {

/// What the answers of all choices of a prompt repeat.
struct PromptPart {
  std::string text;             ///< echo
  CompletionLogprobs logprobs;  ///< echo with logprobs
  std::string scores = "null";  ///< prompt_logprobs
  std::string ids = "null";     ///< return_token_ids
};

/// A choice, or a piece of it in a stream.
struct ChoicePart {
  int index = 0;
  const PromptPart* echo = nullptr;  ///< of echo: before the text of the first part
  bool first = true;                 ///< nothing of this choice was sent before
  std::string text;
  std::string reasoning;              ///< of a message, whose content is the text
  std::vector<CallPart> calls;        ///< of a message
  std::vector<ReportedToken> tokens;  ///< of the text
  TextPlace place;                    ///< of the first of the tokens, where there is no `echo`
  std::vector<std::int32_t> ids;      ///< generated tokens
  std::vector<std::uint64_t> versions;
  IdSets masks;                      ///< return_sampling_mask
  std::vector<float> sampling_logp;  ///< return_sampling_mask: over the tokens of `masks`
  std::string finish;                ///< finish_reason; "" while more follows
  Json stop_reason;                  ///< the stop string or stop token that ended it, or null
};

struct Usage {
  std::int64_t prompt_tokens = 0, completion_tokens = 0;
  std::int64_t cached_tokens = 0;     ///< of the prompts, in the prefix cache
  std::int64_t reasoning_tokens = 0;  ///< of the outputs; counted in pieces only
};

/// Nine letters or digits: templates of Mistral accept no others. `answer`: distinguishes answers.
std::string tool_call_id(const std::string& answer, int choice, int call);

class AnswerJson {
 public:
  /// `request` and `served` must outlive this. `id`: of the HTTP request.
  AnswerJson(const GenerationRequest& request, const Served& served, const std::string& id);

  /// `scores` are used where the request asks for them. Throws Failure (Errc::internal) where they
  /// are not those of the prompt.
  PromptPart prompt_part(std::size_t prompt, const engine::generate::PromptScores& scores) const;

  // Whole texts of JSON.

  /// The beginning of a response, up to its list of choices, ...
  std::string begin() const;
  /// ... each of the choices ...
  void append_choice(std::string& text, const ChoicePart& part, const PromptPart& prompt) const;
  /// ... and the end. `prompt`: the first one, for what a conversation has once.
  void append_end(std::string& text, const Usage& usage, const PromptPart& prompt) const;
  /// A chunk of a stream; `usage` with continuous_usage_stats.
  std::string chunk(const ChoicePart& part, const PromptPart& prompt, const Usage& usage) const;
  /// The last chunk with include_usage.
  std::string usage_chunk(const Usage& usage) const;

 private:
  bool chat() const { return request_.endpoint == Endpoint::chat; }
  Json head(const char* object) const;
  std::string head_text(const char* object) const;
  void append_logprobs(std::string& text, const ChoicePart& part) const;
  void append_choice(std::string& text, const ChoicePart& part, const PromptPart& prompt,
                     bool delta) const;
  void add_content(Json& choice, const ChoicePart& part, bool delta) const;
  Json message(const ChoicePart& part) const;
  Json delta(const ChoicePart& part) const;
  void append_ids(std::string& text, const ChoicePart& part, const PromptPart& prompt) const;
  static void append_masks(std::string& text, const ChoicePart& part);
  Json tool_calls(const ChoicePart& part, bool delta) const;

  const GenerationRequest& request_;
  const Served& served_;
  std::string id_;
  std::int64_t created_;
};

}  // namespace troupe::launch::serve::api
