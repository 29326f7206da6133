#include "launch/serve/api/token_json.h"

#include <algorithm>

#include "engine/base/text.h"
#include "launch/commands/json_lines.h"

namespace troupe::launch::api {

namespace {

Json logprob(float value) {
  return number_or_null(static_cast<double>(value));
}

Json bytes_of(const std::string& text) {
  Json::Array bytes;
  for (const char c : text) bytes.emplace_back(std::int64_t{static_cast<unsigned char>(c)});
  return bytes;
}

/// Several tokens can have the same text; the most likely one is reported.
Json top_object(const ServedModel& model, const ReportedToken& token, bool as_ids) {
  Json out = Json::Object{};
  const auto add = [&](std::int32_t id, float logp) {
    const std::string name = token_name(model, id, as_ids);
    if (out.find(name) == nullptr) out.set(name, logprob(logp));
  };
  for (const auto& each : token.top) add(each.id, each.logp);
  add(token.id, *token.logp);
  return out;
}

Json chat_token(const ServedModel& model, std::int32_t id, float logp, bool as_ids) {
  const std::string name = token_name(model, id, as_ids);
  return Json::Object{{"token", name},
                      {"logprob", logprob(logp)},
                      {"bytes", bytes_of(token_name(model, id, false))}};
}

Json prompt_entry(const ServedModel& model, std::int32_t id, float logp, Json rank) {
  return Json::Object{{"logprob", logprob(logp)},
                      {"rank", std::move(rank)},
                      {"decoded_token", token_name(model, id, false)}};
}

}  // namespace

std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string token_name(const ServedModel& model, std::int32_t id, bool as_id) {
  if (as_id || model.tokenizer() == nullptr) return cat("token_id:", id);
  return model.tokenizer()->decode(std::span(&id, 1), false);
}

Json completion_logprobs(const ServedModel& model, std::span<const ReportedToken> tokens,
                         bool as_ids, std::size_t offset) {
  Json::Array names, logps, tops, offsets;
  for (const ReportedToken& token : tokens) {
    names.emplace_back(token_name(model, token.id, as_ids));
    logps.push_back(token.logp ? logprob(*token.logp) : Json());
    tops.push_back(token.logp ? top_object(model, token, as_ids) : Json());
    offsets.emplace_back(static_cast<std::int64_t>(offset));
    offset += code_points(names.back().string());
  }
  return Json::Object{{"tokens", std::move(names)},
                      {"token_logprobs", std::move(logps)},
                      {"top_logprobs", std::move(tops)},
                      {"text_offset", std::move(offsets)}};
}

Json chat_logprobs(const ServedModel& model, std::span<const ReportedToken> tokens, bool as_ids) {
  Json::Array content;
  for (const ReportedToken& token : tokens) {
    Json entry = chat_token(model, token.id, token.logp.value_or(0), as_ids);
    Json::Array top;
    for (const auto& each : token.top) top.push_back(chat_token(model, each.id, each.logp, as_ids));
    entry.set("top_logprobs", std::move(top));
    content.push_back(std::move(entry));
  }
  return Json::Object{{"content", std::move(content)}};
}

Json prompt_logprobs(const ServedModel& model, std::span<const std::int32_t> prompt,
                     const engine::generate::PromptScores& scores, int alternatives) {
  Json::Array out;
  out.emplace_back(nullptr);
  for (std::size_t t = 1; t < prompt.size(); ++t) {
    Json entry = Json::Object{};
    for (std::int64_t rank = 1; alternatives >= rank && rank <= std::ssize(scores.top[t]); ++rank) {
      const auto& each = scores.top[t][static_cast<std::size_t>(rank) - 1];
      entry.set(std::to_string(each.id), prompt_entry(model, each.id, each.logp, rank));
    }
    if (const std::string own = std::to_string(prompt[t]); entry.find(own) == nullptr)
      entry.set(own, prompt_entry(model, prompt[t], scores.logp[t], nullptr));
    out.push_back(std::move(entry));
  }
  return out;
}

Json ids_json(std::span<const std::int32_t> ids) {
  Json::Array out;
  out.reserve(ids.size());
  for (const std::int32_t id : ids) out.emplace_back(std::int64_t{id});
  return out;
}

}  // namespace troupe::launch::api
