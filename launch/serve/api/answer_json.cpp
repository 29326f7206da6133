#include "launch/serve/api/answer_json.h"

#include <ctime>

#include "engine/base/sha256.h"
#include "engine/base/text.h"

namespace troupe::launch::api {

namespace {

Json usage_json(const Usage& usage) {
  return Json::Object{
      {"prompt_tokens", usage.prompt_tokens},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
      {"completion_tokens", usage.completion_tokens},
      {"prompt_tokens_details", Json::Object{{"cached_tokens", usage.cached_tokens}}}};
}

}  // namespace

AnswerJson::AnswerJson(const GenerationRequest& request, const Served& served,
                       const std::string& id)
    : request_(request),
      served_(served),
      id_(cat(request.endpoint == Endpoint::chat ? "chatcmpl-" : "cmpl-", id)),
      created_(std::time(nullptr)) {
}

Json AnswerJson::head(const char* object) const {
  return Json::Object{
      {"id", id_}, {"object", object}, {"created", created_}, {"model", served_.name}};
}

Json AnswerJson::logprobs(const ChoicePart& part) const {
  if (!request_.logprobs) return nullptr;
  if (chat()) return chat_logprobs(*served_.model, part.tokens, request_.tokens_as_ids);
  return completion_logprobs(*served_.model, part.tokens, request_.tokens_as_ids, part.offset);
}

/// Nine letters or digits: templates of Mistral accept no others.
std::string AnswerJson::call_id(int choice, int call) const {
  const std::string source = cat(id_, " ", created_, " ", choice, " ", call);
  Sha256 sum;
  sum.update(std::as_bytes(std::span(source)));
  return sum.finish().substr(0, 9);
}

/// Pieces of calls in a stream have an index; only the first one of a call has its id and name.
Json AnswerJson::tool_calls(const ChoicePart& part, bool delta) const {
  Json::Array calls;
  for (const CallPart& each : part.calls) {
    Json call = Json::Object{};
    if (delta) call.set("index", std::int64_t{each.index});
    Json function = Json::Object{};
    if (!each.name.empty()) {
      call.set("id", call_id(part.index, each.index)).set("type", "function");
      function.set("name", each.name);
    }
    call.set("function", std::move(function.set("arguments", each.arguments)));
    calls.push_back(std::move(call));
  }
  return calls;
}

Json AnswerJson::message(const ChoicePart& part) const {
  Json out = Json::Object{{"role", "assistant"}};
  if (request_.message.reasoning != ReasoningFormat::none)
    out.set("reasoning_content", part.reasoning.empty() ? Json() : Json(part.reasoning));
  const bool only_calls = part.text.empty() && !part.calls.empty();
  out.set("content", only_calls ? Json() : Json(part.text));
  return out.set("refusal", nullptr).set("tool_calls", tool_calls(part, false));
}

Json AnswerJson::delta(const ChoicePart& part) const {
  Json out = Json::Object{};
  if (part.first) out.set("role", "assistant");
  if (!part.reasoning.empty()) out.set("reasoning_content", part.reasoning);
  if (!part.text.empty() || !request_.message.has_parts()) out.set("content", part.text);
  if (!part.calls.empty()) out.set("tool_calls", tool_calls(part, true));
  return out;
}

void AnswerJson::add_content(Json& choice, const ChoicePart& part, bool delta) const {
  if (!chat())
    choice.set("text", part.text);
  else if (delta)
    choice.set("delta", this->delta(part));
  else
    choice.set("message", message(part));
}

Json AnswerJson::choice(const ChoicePart& part, bool delta) const {
  Json out = Json::Object{{"index", std::int64_t{part.index}}};
  add_content(out, part, delta);
  out.set("logprobs", logprobs(part));
  out.set("finish_reason", part.finish.empty() ? Json() : Json(part.finish));
  out.set("stop_reason", part.stop_reason);
  if (request_.return_token_ids) {
    out.set("token_ids", ids_json(part.ids));
    if (part.first && !chat()) out.set("prompt_token_ids", ids_json(request_.prompts[part.prompt]));
  }
  if (request_.return_weight_versions) {
    Json::Array versions;
    for (const std::uint64_t version : part.versions) versions.emplace_back(version);
    out.set("weight_versions", std::move(versions));
  }
  return out;
}

Json AnswerJson::response(std::span<const ChoicePart> choices, const Usage& usage,
                          std::span<const engine::generate::PromptScores> scores) const {
  Json out = head(chat() ? "chat.completion" : "text_completion");
  const auto prompt_scores = [&](std::size_t prompt) -> Json {
    if (request_.prompt_logprobs < 0) return nullptr;
    return prompt_logprobs(*served_.model, request_.prompts[prompt], scores[prompt],
                           request_.prompt_logprobs);
  };
  Json::Array all;
  for (const ChoicePart& part : choices) {
    all.push_back(choice(part, false));
    if (!chat()) all.back().set("prompt_logprobs", prompt_scores(part.prompt));
  }
  out.set("choices", std::move(all));
  out.set("usage", usage_json(usage));
  if (!chat()) return out;
  out.set("prompt_logprobs", prompt_scores(0));
  if (request_.return_token_ids) out.set("prompt_token_ids", ids_json(request_.prompts[0]));
  return out;
}

Json AnswerJson::chunk(const ChoicePart& part, const Usage& usage) const {
  Json out = head(chat() ? "chat.completion.chunk" : "text_completion");
  Json::Array choices;
  choices.push_back(choice(part, true));
  out.set("choices", std::move(choices));
  if (chat() && part.first && request_.return_token_ids)
    out.set("prompt_token_ids", ids_json(request_.prompts[0]));
  if (request_.continuous_usage)
    out.set("usage", usage_json(usage));
  else if (request_.include_usage)
    out.set("usage", nullptr);
  return out;
}

Json AnswerJson::usage_chunk(const Usage& usage) const {
  Json out = head(chat() ? "chat.completion.chunk" : "text_completion");
  out.set("choices", Json::Array{});
  out.set("usage", usage_json(usage));
  return out;
}

}  // namespace troupe::launch::api
