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

namespace {

void add_item(std::string& items, const std::string& item) {
  if (!items.empty()) items += ',';
  items += item;
}

/// A member of an object that is a list of both items.
void append_list(std::string& text, const char* opening, const std::string* first,
                 const std::string& second) {
  text += opening;
  if (first != nullptr) text += *first;
  if (first != nullptr && !first->empty() && !second.empty()) text += ',';
  text += second;
  text += ']';
}

}  // namespace

void CompletionLogprobs::add(const ServedModel& model, const ReportedToken& token, bool as_ids) {
  const std::string name = token_name(model, token.id, as_ids);
  add_item(names_, Json(name).dump());
  add_item(logps_, (token.logp ? logprob(*token.logp) : Json()).dump());
  add_item(tops_, (token.logp ? top_object(model, token, as_ids) : Json()).dump());
  add_item(offsets_, std::to_string(offset_));
  offset_ += code_points(name);
}

void CompletionLogprobs::append_to(std::string& text, const CompletionLogprobs* before) const {
  append_list(text, "{\"tokens\":[", before ? &before->names_ : nullptr, names_);
  append_list(text, ",\"token_logprobs\":[", before ? &before->logps_ : nullptr, logps_);
  append_list(text, ",\"top_logprobs\":[", before ? &before->tops_ : nullptr, tops_);
  append_list(text, ",\"text_offset\":[", before ? &before->offsets_ : nullptr, offsets_);
  text += '}';
}

std::string chat_logprobs(const ServedModel& model, std::span<const ReportedToken> tokens,
                          bool as_ids) {
  std::string content;
  for (const ReportedToken& token : tokens) {
    Json entry = chat_token(model, token.id, token.logp.value_or(0), as_ids);
    Json::Array top;
    for (const auto& each : token.top) top.push_back(chat_token(model, each.id, each.logp, as_ids));
    entry.set("top_logprobs", std::move(top));
    add_item(content, entry.dump());
  }
  return cat("{\"content\":[", content, "]}");
}

void check_scores(const engine::generate::PromptScores& scores, std::size_t tokens, bool top) {
  if (scores.logp.size() == tokens && (!top || scores.top.size() == tokens)) return;
  throw Failure({Errc::internal,
                 cat("a prompt of ", tokens, " tokens has ", scores.logp.size(),
                     " log-probabilities and ", scores.top.size(), " lists of alternatives")});
}

std::string prompt_logprobs(const ServedModel& model, std::span<const std::int32_t> prompt,
                            const engine::generate::PromptScores& scores, int alternatives) {
  check_scores(scores, prompt.size(), alternatives > 0);
  std::string out = "[null";
  for (std::size_t t = 1; t < prompt.size(); ++t) {
    Json entry = Json::Object{};
    const std::int64_t count = alternatives > 0 ? std::ssize(scores.top[t]) : 0;
    for (std::int64_t rank = 1; rank <= std::min<std::int64_t>(alternatives, count); ++rank) {
      const auto& each = scores.top[t][static_cast<std::size_t>(rank) - 1];
      entry.set(std::to_string(each.id), prompt_entry(model, each.id, each.logp, rank));
    }
    if (const std::string own = std::to_string(prompt[t]); entry.find(own) == nullptr)
      entry.set(own, prompt_entry(model, prompt[t], scores.logp[t], nullptr));
    add_item(out, entry.dump());
  }
  return out += ']';
}

std::string ids_text(std::span<const std::int32_t> ids) {
  std::string items;
  for (const std::int32_t id : ids) add_item(items, std::to_string(id));
  return cat('[', items, ']');
}

Json ids_json(std::span<const std::int32_t> ids) {
  Json::Array out;
  out.reserve(ids.size());
  for (const std::int32_t id : ids) out.emplace_back(std::int64_t{id});
  return out;
}

}  // namespace troupe::launch::api
