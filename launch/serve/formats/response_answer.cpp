#include "launch/serve/formats/response_answer.h"

#include <ctime>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::formats {

namespace {

Json response_usage(const api::Usage& usage) {
  return Json::Object{
      {"input_tokens", usage.prompt_tokens},
      {"input_tokens_details",
       Json::Object{{"cached_tokens", usage.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", usage.completion_tokens},
      {"output_tokens_details", Json::Object{{"reasoning_tokens", usage.reasoning_tokens}}},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

Json text_part(const std::string& text) {
  return Json::Object{{"type", "output_text"},
                      {"text", text},
                      {"annotations", Json::Array{}},
                      {"logprobs", Json::Array{}}};
}

Json part_of(const OutputBlock& block, const std::string& text) {
  if (block.kind == BlockKind::text) return text_part(text);
  return Json::Object{{"type", "reasoning_text"}, {"text", text}};
}

/// A response before its first token.
Json new_response(const std::string& id, const std::string& model, Json repeated,
                  const api::GenerationRequest& request) {
  const auto created = static_cast<std::int64_t>(std::time(nullptr));
  Json response = Json::Object{{"id", id},
                               {"object", "response"},
                               {"created_at", created},
                               {"status", "in_progress"},
                               {"background", false},
                               {"completed_at", nullptr},
                               {"error", nullptr},
                               {"incomplete_details", nullptr},
                               {"model", model},
                               {"output", Json::Array{}},
                               {"usage", nullptr},
                               {"temperature", request.params.temperature},
                               {"top_p", request.params.top_p},
                               {"top_logprobs", 0},
                               {"max_tool_calls", nullptr},
                               {"previous_response_id", nullptr},
                               {"prompt", nullptr},
                               {"service_tier", "default"},
                               {"store", false},
                               {"truncation", "disabled"}};
  for (auto& [name, value] : repeated.object()) response.set(name, std::move(value));
  return response;
}

/// Of errors within a response: the names that the client knows.
const char* code_of(const Error& error) {
  const int status = api::status_of(error.code);
  if (status == 429) return "rate_limit_exceeded";
  return status < 500 ? "invalid_prompt" : "server_error";
}

}  // namespace

ResponseAnswer::ResponseAnswer(Json repeated, const api::GenerationRequest& request,
                               const std::string& model, const std::string& id)
    : id_(cat("resp_", id)),
      bytes_(repeated.dump().size()),
      streams_(request.stream),
      response_(new_response(id_, model, std::move(repeated), request)) {
}

std::string ResponseAnswer::item_id(const OutputBlock& block) const {
  const char* prefix = block.kind == BlockKind::text        ? "msg_"
                       : block.kind == BlockKind::reasoning ? "rs_"
                                                            : "fc_";
  return cat(prefix, id_.substr(5), "_", block.index);
}

/// `status` in_progress: an item that has just begun.
Json ResponseAnswer::item(const OutputBlock& block, const char* status) const {
  const bool begins = status == std::string_view("in_progress");
  Json out = Json::Object{{"id", item_id(block)}};
  Json::Array content;
  if (!begins && block.kind != BlockKind::call) content.push_back(part_of(block, block.text));
  switch (block.kind) {
    case BlockKind::text:
      return out.set("type", "message")
          .set("role", "assistant")
          .set("status", status)
          .set("content", std::move(content));
    case BlockKind::reasoning:
      return out.set("type", "reasoning")
          .set("status", status)
          .set("summary", Json::Array{})
          .set("content", std::move(content))
          .set("encrypted_content", nullptr);
    case BlockKind::call:
      break;
  }
  return out.set("type", "function_call")
      .set("status", status)
      .set("call_id", api::tool_call_id(id_, 0, block.call))
      .set("name", block.name)
      .set("arguments", block.text);
}

Json::Array ResponseAnswer::items() const {
  Json::Array out;
  for (const OutputBlock& block : blocks_.all()) {
    const bool incomplete = cut_off_ && block.index + 1 == blocks_.all().size();
    out.push_back(item(block, incomplete ? "incomplete" : "completed"));
  }
  return out;
}

void ResponseAnswer::push(const char* type, Json::Object members) {
  if (!streams_) return;
  Json data = Json::Object{{"type", type}, {"sequence_number", sequence_++}};
  for (auto& [name, value] : members) data.set(name, std::move(value));
  events_.push_back({type, data.dump()});
}

void ResponseAnswer::push_of_part(const char* type, const OutputBlock& block, const char* name,
                                  Json value) {
  if (!streams_) return;
  const auto index = static_cast<std::int64_t>(block.index);
  Json::Object members = {{"item_id", item_id(block)}, {"output_index", index}};
  if (block.kind != BlockKind::call) members.emplace_back("content_index", 0);
  members.emplace_back(name, std::move(value));
  const bool text = type == std::string_view("response.output_text.delta") ||
                    type == std::string_view("response.output_text.done");
  if (text) members.emplace_back("logprobs", Json::Array{});
  push(type, std::move(members));
}

void ResponseAnswer::opened(const OutputBlock& block) {
  if (!streams_) return;
  const auto index = static_cast<std::int64_t>(block.index);
  push("response.output_item.added",
       {{"output_index", index}, {"item", item(block, "in_progress")}});
  if (block.kind != BlockKind::call)
    push_of_part("response.content_part.added", block, "part", part_of(block, ""));
}

void ResponseAnswer::grown(const OutputBlock& block, const std::string& piece) {
  const char* type = block.kind == BlockKind::text ? "response.output_text.delta"
                     : block.kind == BlockKind::reasoning
                         ? "response.reasoning_text.delta"
                         : "response.function_call_arguments.delta";
  push_of_part(type, block, "delta", piece);
}

void ResponseAnswer::closed(const OutputBlock& block) {
  if (!streams_) return;
  if (block.kind == BlockKind::call) {
    const auto index = static_cast<std::int64_t>(block.index);
    push("response.function_call_arguments.done", {{"item_id", item_id(block)},
                                                   {"output_index", index},
                                                   {"name", block.name},
                                                   {"arguments", block.text}});
  } else {
    const bool text = block.kind == BlockKind::text;
    push_of_part(text ? "response.output_text.done" : "response.reasoning_text.done", block, "text",
                 block.text);
    push_of_part("response.content_part.done", block, "part", part_of(block, block.text));
  }
  push("response.output_item.done", {{"output_index", static_cast<std::int64_t>(block.index)},
                                     {"item", item(block, cut_off_ ? "incomplete" : "completed")}});
}

void ResponseAnswer::begin() {
  if (std::exchange(begun_, true) || !streams_) return;
  push("response.created", {{"response", response_}});
  push("response.in_progress", {{"response", response_}});
}

void ResponseAnswer::finish(const api::ChoicePart& part, const api::Usage& usage) {
  cut_off_ = part.finish == "length";
  blocks_.finish(*this);
  response_.set("status", cut_off_ ? "incomplete" : "completed")
      .set("output", items())
      .set("usage", response_usage(usage));
  if (cut_off_)
    response_.set("incomplete_details", Json::Object{{"reason", "max_output_tokens"}});
  else
    response_.set("completed_at", static_cast<std::int64_t>(std::time(nullptr)));
  push(cut_off_ ? "response.incomplete" : "response.completed", {{"response", response_}});
}

std::vector<http::Event> ResponseAnswer::add(const api::ChoicePart& part, const api::Usage& usage) {
  begin();
  blocks_.add(part, *this);
  if (!part.finish.empty()) finish(part, usage);
  return std::exchange(events_, {});
}

http::Event ResponseAnswer::failed(const Error& error) {
  response_.set("status", "failed")
      .set("output", items())
      .set("error", Json::Object{{"code", code_of(error)}, {"message", error.what}});
  streams_ = true;
  push("response.failed", {{"response", response_}});
  http::Event event = std::move(events_.back());
  events_.clear();
  return event;
}

}  // namespace troupe::launch::serve::formats
