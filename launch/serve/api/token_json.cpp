#include "launch/serve/api/token_json.h"

#include <algorithm>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/model/json_lines.h"

namespace troupe::launch::serve::api {

namespace {

Json logprob(float value) {
  return model::number_or_null(static_cast<double>(value));
}

Json bytes_of(const std::string& text) {
  Json::Array bytes;
  for (const char c : text) bytes.emplace_back(std::int64_t{static_cast<unsigned char>(c)});
  return bytes;
}

/// The sampled token comes first. Several tokens can have the same text; the value is that of the
/// most likely one.
Json top_object(const ServedModel& model, const ReportedToken& token, bool as_ids,
                const TextPlace& place) {
  float own = *token.logp;
  std::vector<std::pair<std::string, float>> others;
  const std::string name = token_name(model, token.id, as_ids, place);
  for (const auto& each : token.top) {
    others.emplace_back(token_name(model, each.id, as_ids, place), each.logp);
    if (others.back().first == name) own = std::max(own, each.logp);
  }
  Json out = Json::Object{{name, logprob(own)}};
  for (const auto& [other, logp] : others)
    if (out.find(other) == nullptr) out.set(other, logprob(logp));
  return out;
}

Json chat_token(const ServedModel& model, std::int32_t id, float logp, bool as_ids,
                const TextPlace& place) {
  return Json::Object{{"token", token_name(model, id, as_ids, place)},
                      {"logprob", logprob(logp)},
                      {"bytes", bytes_of(place.bytes_of(model, id))}};
}

Json prompt_entry(const ServedModel& model, std::int32_t id, float logp, std::int64_t rank,
                  const TextPlace& place) {
  return Json::Object{{"logprob", logprob(logp)},
                      {"rank", rank},
                      {"decoded_token", token_name(model, id, false, place)}};
}

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

}  // namespace

std::string TextPlace::bytes_of(const ServedModel& model, std::int32_t id) const {
  if (model.tokenizer() == nullptr) return "";
  std::string bytes = model.bytes_of(id);
  if (bytes.empty() && !skips_special) return model.tokenizer()->decode(std::span(&id, 1), false);
  if (begins && bytes.starts_with(' ') && model.drops_first_space()) bytes.erase(0, 1);
  return bytes;
}

std::size_t TextPlace::offset_of(const std::string& bytes) const {
  const bool continues = !bytes.empty() && !begins_character(bytes.front());
  return characters - (continues && characters > 0 ? 1 : 0);
}

void TextPlace::pass(const std::string& bytes) {
  characters += static_cast<std::size_t>(std::ranges::count_if(bytes, begins_character));
  begins = begins && bytes.empty();
}

std::string token_name(const ServedModel& model, std::int32_t id, bool as_id,
                       const TextPlace& place) {
  if (as_id || model.tokenizer() == nullptr) return cat("token_id:", id);
  std::string bytes = place.bytes_of(model, id);
  return !bytes.empty() && valid_utf8(bytes) ? bytes
                                             : model.tokenizer()->decode(std::span(&id, 1), false);
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
  const std::string bytes = place_.bytes_of(model, token.id);
  add_item(names_, Json(token_name(model, token.id, as_ids, place_)).dump());
  add_item(logps_, (token.logp ? logprob(*token.logp) : Json()).dump());
  add_item(tops_, (token.logp ? top_object(model, token, as_ids, place_) : Json()).dump());
  add_item(offsets_, std::to_string(place_.offset_of(bytes)));
  place_.pass(bytes);
}

void CompletionLogprobs::append_to(std::string& text, const CompletionLogprobs* before) const {
  append_list(text, "{\"tokens\":[", before ? &before->names_ : nullptr, names_);
  append_list(text, ",\"token_logprobs\":[", before ? &before->logps_ : nullptr, logps_);
  append_list(text, ",\"top_logprobs\":[", before ? &before->tops_ : nullptr, tops_);
  append_list(text, ",\"text_offset\":[", before ? &before->offsets_ : nullptr, offsets_);
  text += '}';
}

std::string chat_logprobs(const ServedModel& model, std::span<const ReportedToken> tokens,
                          bool as_ids, TextPlace place) {
  std::string content;
  for (const ReportedToken& token : tokens) {
    Json entry = chat_token(model, token.id, token.logp.value_or(0), as_ids, place);
    Json::Array top;
    for (const auto& each : token.top)
      top.push_back(chat_token(model, each.id, each.logp, as_ids, place));
    entry.set("top_logprobs", std::move(top));
    add_item(content, entry.dump());
    place.pass(place.bytes_of(model, token.id));
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
                            const engine::generate::PromptScores& scores, int alternatives,
                            TextPlace place) {
  check_scores(scores, prompt.size(), alternatives > 0);
  std::string out = "[null";
  for (std::size_t t = 1; t < prompt.size(); ++t) {
    place.pass(place.bytes_of(model, prompt[t - 1]));
    std::string items;
    bool has_own = false;
    const auto add = [&](std::int32_t id, float logp, std::int64_t rank) {
      has_own = has_own || id == prompt[t];
      add_item(items, cat('"', id, "\":", prompt_entry(model, id, logp, rank, place).dump()));
    };
    const std::int64_t count = alternatives > 0 ? std::ssize(scores.top[t]) : 0;
    for (std::int64_t rank = 1; rank <= std::min<std::int64_t>(alternatives, count); ++rank) {
      const auto& each = scores.top[t][static_cast<std::size_t>(rank) - 1];
      add(each.id, each.logp, rank);
    }
    if (!has_own) add(prompt[t], scores.logp[t], scores.rank[t]);
    add_item(out, cat('{', items, '}'));
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

}  // namespace troupe::launch::serve::api
