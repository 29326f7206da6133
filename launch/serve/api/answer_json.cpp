#include "launch/serve/api/answer_json.h"

#include <algorithm>
#include <ctime>

#include "engine/base/random/sha256.h"
#include "engine/base/text/base64.h"
#include "engine/base/text/text.h"

namespace troupe::launch::serve::api {

namespace {

/// vLLM's name, and the older one.
constexpr const char* reasoning_names[] = {"reasoning", "reasoning_content"};

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

/// Without the closing brace.
std::string AnswerJson::head_text(const char* object) const {
  std::string text = head(object).dump();
  text.pop_back();
  return text;
}

PromptPart AnswerJson::prompt_part(std::size_t prompt,
                                   const engine::generate::PromptScores& scores) const {
  const auto& ids = request_.prompts[prompt];
  const ServedModel& model = *served_.model;
  PromptPart part;
  if (request_.return_token_ids) part.ids = ids_text(ids);  // else null
  if (request_.prompt_logprobs >= 0)
    part.scores = prompt_logprobs(model, ids, scores, request_.prompt_logprobs,
                                  {.skips_special = request_.skip_special});
  if (!request_.echo) return part;
  if (!request_.prompt_texts.empty())
    part.text = request_.prompt_texts[prompt];
  else if (const auto* tokenizer = model.tokenizer())
    part.text = tokenizer->decode(ids, request_.skip_special);
  if (!request_.logprobs) return part;
  part.logprobs = CompletionLogprobs({.skips_special = request_.skip_special});
  const auto wanted = static_cast<std::size_t>(request_.params.top_logprobs);
  check_scores(scores, ids.size(), wanted > 0);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    ReportedToken token{ids[t], std::nullopt, {}};
    if (t > 0) token.logp = scores.logp[t];
    if (t > 0 && wanted > 0) {
      const auto& top = scores.top[t];
      token.top.assign(top.begin(),
                       top.begin() + static_cast<std::ptrdiff_t>(std::min(top.size(), wanted)));
    }
    part.logprobs.add(model, token, request_.tokens_as_ids);
  }
  return part;
}

void AnswerJson::append_logprobs(std::string& text, const ChoicePart& part) const {
  const ServedModel& model = *served_.model;
  if (!request_.logprobs) {
    text += "null";
  } else if (chat()) {
    text += chat_logprobs(model, part.tokens, request_.tokens_as_ids, part.place);
  } else {
    CompletionLogprobs own(part.echo ? part.echo->logprobs.place() : part.place);
    for (const ReportedToken& token : part.tokens) own.add(model, token, request_.tokens_as_ids);
    own.append_to(text, part.echo ? &part.echo->logprobs : nullptr);
  }
}

std::string tool_call_id(const std::string& answer, int choice, int call) {
  const std::string source = cat(answer, " ", choice, " ", call);
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
      call.set("id", tool_call_id(cat(id_, " ", created_), part.index, each.index))
          .set("type", "function");
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
    for (const char* name : reasoning_names)
      out.set(name, part.reasoning.empty() ? Json() : Json(part.reasoning));
  const bool only_calls = part.text.empty() && !part.calls.empty();
  out.set("content", only_calls ? Json() : Json(part.text));
  out.set("refusal", nullptr);
  if (!part.calls.empty()) out.set("tool_calls", tool_calls(part, false));
  return out;
}

Json AnswerJson::delta(const ChoicePart& part) const {
  Json out = Json::Object{};
  if (part.first) out.set("role", "assistant");
  if (!part.reasoning.empty())
    for (const char* name : reasoning_names) out.set(name, part.reasoning);
  const bool ends = !part.first && !part.finish.empty();  // with {} where there is no text
  if (!part.text.empty() || !(request_.message.has_parts() || ends)) out.set("content", part.text);
  if (!part.calls.empty()) out.set("tool_calls", tool_calls(part, true));
  return out;
}

void AnswerJson::add_content(Json& choice, const ChoicePart& part, bool delta) const {
  if (!chat())
    choice.set("text", part.echo ? part.echo->text + part.text : part.text);
  else if (delta)
    choice.set("delta", this->delta(part));
  else
    choice.set("message", message(part));
}

void AnswerJson::append_ids(std::string& text, const ChoicePart& part,
                            const PromptPart& prompt) const {
  text += ",\"token_ids\":";
  text += request_.return_token_ids ? ids_text(part.ids) : "null";
  if (part.first && !chat()) text += ",\"prompt_token_ids\":" + prompt.ids;
}

void AnswerJson::append_masks(std::string& text, const ChoicePart& part) {
  text += ",\"sampling_mask\":[";
  for (std::size_t i = 0; i < part.masks.size(); ++i)
    text += cat(i > 0 ? ",\"" : "\"", encode_base64(part.masks[i]), '"');
  text += "],\"sampling_logprobs\":[";
  for (std::size_t i = 0; i < part.sampling_logp.size(); ++i)
    text += (i > 0 ? "," : "") + Json(static_cast<double>(part.sampling_logp[i])).dump();
  text += ']';
}

void AnswerJson::append_choice(std::string& text, const ChoicePart& part, const PromptPart& prompt,
                               bool delta) const {
  Json first = Json::Object{{"index", std::int64_t{part.index}}};
  add_content(first, part, delta);
  text += first.dump();
  text.back() = ',';
  text += "\"logprobs\":";
  append_logprobs(text, part);
  Json rest = Json::Object{{"finish_reason", part.finish.empty() ? Json() : Json(part.finish)},
                           {"stop_reason", part.stop_reason}};
  std::string end = rest.dump();
  end.front() = ',';
  end.pop_back();
  text += end;
  append_ids(text, part, prompt);
  if (request_.return_weight_versions) {
    text += ",\"weight_versions\":[";
    for (const std::uint64_t version : part.versions) text += std::to_string(version) + ',';
    if (part.versions.empty()) text += ']';
    text.back() = ']';
  }
  if (request_.mask_bytes > 0) append_masks(text, part);
  if (!chat() && !delta) text += ",\"prompt_logprobs\":" + prompt.scores;
  text += '}';
}

std::string AnswerJson::begin() const {
  return head_text(chat() ? "chat.completion" : "text_completion") + ",\"choices\":[";
}

void AnswerJson::append_choice(std::string& text, const ChoicePart& part,
                               const PromptPart& prompt) const {
  if (text.back() != '[') text += ',';
  append_choice(text, part, prompt, false);
}

void AnswerJson::append_end(std::string& text, const Usage& usage, const PromptPart& prompt) const {
  text += "],\"usage\":" + usage_json(usage).dump();
  if (chat()) {
    text += ",\"prompt_logprobs\":" + prompt.scores;
    text += ",\"prompt_token_ids\":" + prompt.ids;
  }
  text += '}';
}

std::string AnswerJson::chunk(const ChoicePart& part, const PromptPart& prompt,
                              const Usage& usage) const {
  std::string text = head_text(chat() ? "chat.completion.chunk" : "text_completion");
  text += ",\"choices\":[";
  append_choice(text, part, prompt, true);
  text += ']';
  if (chat() && part.first) text += ",\"prompt_token_ids\":" + prompt.ids;
  if (request_.continuous_usage)
    text += ",\"usage\":" + usage_json(usage).dump();
  else if (request_.include_usage)
    text += ",\"usage\":null";
  return text += '}';
}

std::string AnswerJson::usage_chunk(const Usage& usage) const {
  Json out = head(chat() ? "chat.completion.chunk" : "text_completion");
  out.set("choices", Json::Array{});
  out.set("usage", usage_json(usage));
  return out.dump();
}

}  // namespace troupe::launch::serve::api
