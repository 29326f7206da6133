#include "launch/serve/formats/message_answer.h"

#include <utility>

#include "engine/base/text/text.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::formats {

namespace {

/// The key under which Anthropic's documentation keeps arguments that are not a JSON object.
constexpr const char* invalid_arguments = "INVALID_JSON";

const char* error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

Json error_json(int status, const std::string& message) {
  return Json::Object{{"type", "error"},
                      {"error", Json::Object{{"type", error_type(status)}, {"message", message}}}};
}

/// Tokens that the prefix cache had are among the input tokens, as they are those of the prompt.
Json message_usage(const api::Usage& usage, std::int64_t output_tokens) {
  return Json::Object{{"input_tokens", usage.prompt_tokens},
                      {"output_tokens", output_tokens},
                      {"cache_creation_input_tokens", 0},
                      {"cache_read_input_tokens", 0}};
}

Json input_of(const std::string& arguments) {
  if (arguments.empty()) return Json::Object{};
  auto parsed = parse_json(arguments, "the arguments");
  if (parsed && parsed->is_object()) return std::move(*parsed);
  return Json::Object{{invalid_arguments, arguments}};
}

}  // namespace

http::Response anthropic_error(http::Response response) {
  std::string message = response.body;
  if (const auto body = parse_json(response.body, "an error")) {
    const Json* error = body->find("error");
    const Json* text = error ? error->find("message") : nullptr;
    if (text != nullptr && text->is_string()) message = text->string();
    const Json* param = error ? error->find("param") : nullptr;  // these errors have none
    if (param != nullptr && param->is_string() &&
        message.find(param->string()) == std::string::npos)
      message.insert(0, param->string() + ": ");
  }
  response.body = error_json(response.status, message).dump();
  return response;
}

MessageAnswer::MessageAnswer(const api::GenerationRequest& request, const std::string& model,
                             const std::string& id)
    : id_(cat("msg_", id)),
      streams_(request.stream),
      message_(Json::Object{{"id", id_},
                            {"type", "message"},
                            {"role", "assistant"},
                            {"model", model},
                            {"content", Json::Array{}},
                            {"stop_reason", nullptr},
                            {"stop_sequence", nullptr}}) {
}

Json MessageAnswer::content_block(const OutputBlock& block, bool begins) const {
  const std::string text = begins ? "" : block.text;
  switch (block.kind) {
    case BlockKind::text:
      return Json::Object{{"type", "text"}, {"text", text}, {"citations", nullptr}};
    case BlockKind::reasoning:
      return Json::Object{{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
    case BlockKind::call:
      break;
  }
  return Json::Object{{"type", "tool_use"},
                      {"id", api::tool_call_id(id_, 0, block.call)},
                      {"name", block.name},
                      {"input", input_of(text)}};
}

void MessageAnswer::push(const char* type, Json::Object members) {
  if (!streams_) return;
  Json data = Json::Object{{"type", type}};
  for (auto& [name, value] : members) data.set(name, std::move(value));
  events_.push_back({type, data.dump()});
}

void MessageAnswer::opened(const OutputBlock& block) {
  if (!streams_) return;
  push("content_block_start", {{"index", static_cast<std::int64_t>(block.index)},
                               {"content_block", content_block(block, true)}});
}

void MessageAnswer::grown(const OutputBlock& block, const std::string& piece) {
  if (!streams_) return;
  Json delta;
  if (block.kind == BlockKind::text)
    delta = Json::Object{{"type", "text_delta"}, {"text", piece}};
  else if (block.kind == BlockKind::reasoning)
    delta = Json::Object{{"type", "thinking_delta"}, {"thinking", piece}};
  else
    delta = Json::Object{{"type", "input_json_delta"}, {"partial_json", piece}};
  push("content_block_delta",
       {{"index", static_cast<std::int64_t>(block.index)}, {"delta", std::move(delta)}});
}

void MessageAnswer::closed(const OutputBlock& block) {
  push("content_block_stop", {{"index", static_cast<std::int64_t>(block.index)}});
}

void MessageAnswer::begin(const api::Usage& usage) {
  if (std::exchange(begun_, true) || !streams_) return;
  Json message = message_;
  push("message_start", {{"message", std::move(message.set("usage", message_usage(usage, 0)))}});
  push("ping", {});
}

void MessageAnswer::finish(const api::ChoicePart& part, const api::Usage& usage) {
  blocks_.finish(*this);
  const char* reason = "end_turn";
  if (part.finish == "length")
    reason = "max_tokens";
  else if (blocks_.has_calls())
    reason = "tool_use";
  else if (part.stop_reason.is_string())
    reason = "stop_sequence";
  const bool stopped = reason == std::string_view("stop_sequence");
  const Json sequence = stopped ? part.stop_reason : Json();
  Json::Array content;
  for (const OutputBlock& block : blocks_.all()) content.push_back(content_block(block, false));
  message_.set("content", std::move(content))
      .set("stop_reason", reason)
      .set("stop_sequence", sequence)
      .set("usage", message_usage(usage, usage.completion_tokens));
  push("message_delta",
       {{"delta", Json::Object{{"stop_reason", reason}, {"stop_sequence", sequence}}},
        {"usage", message_usage(usage, usage.completion_tokens)}});
  push("message_stop", {});
}

std::vector<http::Event> MessageAnswer::add(const api::ChoicePart& part, const api::Usage& usage) {
  begin(usage);
  blocks_.add(part, *this);
  if (!part.finish.empty()) finish(part, usage);
  return std::exchange(events_, {});
}

http::Event MessageAnswer::failed(const Error& error) {
  return {"error", error_json(api::status_of(error.code), error.what).dump()};
}

}  // namespace troupe::launch::serve::formats
