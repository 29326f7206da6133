#include "launch/serve/api/generation_request.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/base/sets/id_sets.h"
#include "engine/base/text/text.h"
#include "launch/serve/api/chat_messages.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/output_constraints.h"
#include "launch/serve/api/prompt_fields.h"
#include "launch/serve/api/request_bounds.h"
#include "launch/serve/api/request_fields.h"
#include "launch/serve/api/sampling_fields.h"
#include "launch/serve/api/tool_fields.h"

namespace troupe::launch::serve::api {

namespace {

constexpr std::size_t max_choices_given = 10'000;

Json any_object() {
  return Json::Object{{"type", "object"}};
}

/// Schemas may be sent as text.
Json read_schema(const Json& value, const std::string& field) {
  if (!value.is_string()) return value;
  auto parsed = parse_json(value.string(), field);
  if (!parsed) refuse(field, parsed.error().what);
  return std::move(*parsed);
}

Json read_choices(const Json& value, const std::string& field) {
  if (!value.is_array() || value.array().empty() || value.array().size() > max_choices_given)
    refuse(field, cat(field, ": expected a list of 1 to ", max_choices_given, " texts"));
  for (const Json& each : value.array())
    if (!each.is_string() || each.string().empty())
      refuse(field, cat(field, ": expected texts that are not empty"));
  return value;
}

/// Collects the constraints of a request, of which there may be one.
class Constraints {
 public:
  void add(ConstraintKind kind, Json value, const std::string& field) {
    if (found_)
      refuse(field, cat(field, " is not allowed with ", found_->field, ": one constraint at most"));
    found_ = ConstraintText{kind, std::move(value), field};
  }
  /// The constraints among `fields` with `prefix` before their names.
  void read(RequestFields& fields, const std::string& prefix) {
    const auto path = [&](const char* name) { return fields.path(prefix + name); };
    if (const Json* value = fields.find(prefix + "json"))
      add(ConstraintKind::schema, read_schema(*value, path("json")), path("json"));
    if (const auto text = fields.text(prefix + "regex"))
      add(ConstraintKind::regex, *text, path("regex"));
    if (const Json* value = fields.find(prefix + "choice"))
      add(ConstraintKind::choice, read_choices(*value, path("choice")), path("choice"));
    if (const auto text = fields.text(prefix + "grammar"))
      add(ConstraintKind::grammar, *text, path("grammar"));
  }
  std::optional<ConstraintText> take() { return std::move(found_); }

 private:
  std::optional<ConstraintText> found_;
};

void read_response_format(RequestFields& fields, Constraints& constraints) {
  const Json* format = fields.find("response_format");
  if (format == nullptr) return;
  RequestFields members(*format, "response_format.");
  const auto type = members.text("type");
  if (type == "text") return;
  if (type == "json_object") {
    const Json* schema = members.find("schema");
    if (schema == nullptr)
      return constraints.add(ConstraintKind::schema, any_object(), "response_format");
    return constraints.add(ConstraintKind::schema, *schema, members.path("schema"));
  }
  if (type != "json_schema")
    refuse_unsupported("response_format",
                       "response_format.type: expected text, json_object or "
                       "json_schema");
  const Json* described = members.find("json_schema");
  if (described == nullptr)
    refuse("response_format.json_schema", "response_format.json_schema is missing");
  RequestFields inner(*described, "response_format.json_schema.");
  const Json* schema = inner.find("schema");
  if (schema == nullptr) refuse(inner.path("schema"), cat(inner.path("schema"), " is missing"));
  constraints.add(ConstraintKind::schema, *schema, inner.path("schema"));
}

/// Names of llama.cpp and SGLang. There an empty text is none.
void read_other_names(RequestFields& fields, Constraints& constraints) {
  if (const Json* value = fields.find("json_schema"); value && *value != Json(""))
    constraints.add(ConstraintKind::schema, read_schema(*value, "json_schema"), "json_schema");
  for (const auto& [name, kind] :
       {std::pair("grammar", ConstraintKind::grammar), std::pair("ebnf", ConstraintKind::grammar),
        std::pair("regex", ConstraintKind::regex)})
    if (const auto text = fields.text(name); text && !text->empty())
      constraints.add(kind, *text, name);
}

/// Nothing when the output is free. Throws ApiFailure, also for more than one constraint.
std::optional<ConstraintText> read_constraint(RequestFields& fields) {
  Constraints constraints;
  read_response_format(fields, constraints);
  if (const Json* value = fields.find("structured_outputs")) {
    RequestFields members(*value, "structured_outputs.");
    constraints.read(members, "");
    if (members.flag("json_object", false))
      constraints.add(ConstraintKind::schema, any_object(), members.path("json_object"));
    for (const std::string& name : members.unknown())
      refuse_unsupported(name, cat(name,
                                   " is not supported; supported: json, regex, choice, "
                                   "grammar, json_object"));
  }
  constraints.read(fields, "guided_");
  read_other_names(fields, constraints);
  return constraints.take();
}

using engine::constraints::Reasoning;

constexpr std::int64_t default_completion_tokens = 16;  // of the OpenAI API
constexpr std::size_t max_salt_bytes = 256;

void read_chat_only(RequestFields& fields, GenerationRequest& request) {
  if (const Json* kinds = fields.find("modalities");
      kinds && *kinds != Json(Json::Array{Json("text")}))
    refuse_unsupported("modalities", "modalities: only [\"text\"] is supported");
  request.include_reasoning = fields.flag("include_reasoning", true);
}

void read_stream(RequestFields& fields, GenerationRequest& request) {
  request.stream = fields.flag("stream", false);
  const Json* options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!request.stream)
    refuse("stream_options", "stream_options is allowed only with \"stream\": true");
  RequestFields members(*options, "stream_options.");
  request.include_usage = members.flag("include_usage", false);
  request.continuous_usage = members.flag("continuous_usage_stats", false) && request.include_usage;
}

/// -1: the whole vocabulary.
void read_prompt_logprobs(RequestFields& fields, const ServedModel& model,
                          GenerationRequest& request) {
  const auto count = fields.integer("prompt_logprobs", -1, max_alternatives);
  if (!count) return;
  if (request.stream) refuse("prompt_logprobs", "prompt_logprobs is not allowed with stream");
  request.prompt_logprobs = static_cast<int>(*count < 0 ? model.vocabulary() : *count);
}

void read_reported(RequestFields& fields, const ServedModel& model, GenerationRequest& request) {
  auto ids = fields.ids("logprob_token_ids", model.vocabulary(), max_reported_tokens);
  if (!ids) return;
  if (ids->empty())
    refuse("logprob_token_ids", "logprob_token_ids is empty; expected at least one token id");
  if (!request.logprobs)
    refuse("logprob_token_ids", "logprob_token_ids is allowed only with logprobs");
  request.reported = std::move(*ids);
}

void read_logprobs(RequestFields& fields, const ServedModel& model, GenerationRequest& request) {
  if (request.endpoint == Endpoint::chat) {
    request.logprobs = fields.flag("logprobs", false);
    const auto top = fields.integer("top_logprobs", 0, max_alternatives);
    if (top.value_or(0) > 0 && !request.logprobs)
      refuse("top_logprobs", "top_logprobs is allowed only with \"logprobs\": true");
    request.params.top_logprobs = static_cast<int>(top.value_or(0));
  } else if (const auto count = fields.integer("logprobs", 0, max_alternatives)) {
    request.logprobs = true;
    request.params.top_logprobs = static_cast<int>(*count);
  }
  read_prompt_logprobs(fields, model, request);
  read_reported(fields, model, request);
}

void read_choices(RequestFields& fields, GenerationRequest& request) {
  const auto named = fields.integer("n_cmpl", 1, max_choices);
  request.choices =
      static_cast<int>(fields.integer("n", 1, max_choices).value_or(named.value_or(1)));
  request.best_of = request.choices;
  if (request.endpoint == Endpoint::chat) return;
  if (const auto best_of = fields.integer("best_of", 1, max_choices)) {
    request.best_of = static_cast<int>(*best_of);
    if (request.best_of < request.choices)
      refuse("best_of",
             cat("best_of is ", request.best_of, ", less than n, which is ", request.choices));
    if (request.stream && request.best_of > request.choices)
      refuse("best_of",
             "best_of above n is not allowed with stream: the best are known at the "
             "end");
  }
}

void read_output(RequestFields& fields, const ServedModel& model, GenerationRequest& request) {
  request.tokens_as_ids = fields.flag("return_tokens_as_token_ids", false);
  request.return_token_ids = fields.flag("return_token_ids", false);
  request.return_weight_versions = fields.flag("return_weight_versions", model.names_versions());
  if (fields.flag("return_sampling_mask", false)) {
    if (!request.logprobs)
      refuse("return_sampling_mask", "return_sampling_mask is allowed only with logprobs");
    request.params.report_masks = true;
    request.mask_bytes = max_id_set_bytes(model.vocabulary());
  }
  request.include_stop = fields.flag("include_stop_str_in_output", false);
  request.skip_special = fields.flag("skip_special_tokens", true);
  if (const auto salt = fields.text("cache_salt")) {
    if (salt->empty() || salt->size() > max_salt_bytes)
      refuse("cache_salt",
             cat("cache_salt has ", salt->size(), " bytes; allowed: 1 to ", max_salt_bytes));
    request.cache_salt = *salt;
  }
}

/// How calls stand in the answer, and the constraint of an answer that must be one. `constrained`:
/// the request has another constraint.
std::optional<ConstraintText> read_tool_output(const Tools& tools, const ServedModel& model,
                                               bool constrained, GenerationRequest& request) {
  if (tools.choice == ToolChoice::none) return std::nullopt;
  if (!model.template_has_tools())
    refuse_unsupported("tools",
                       "tools: the chat template does not show them to the model; use another "
                       "one, see --template");
  if (auto text = tool_constraint(tools)) {
    if (constrained)
      refuse("tool_choice", "tool_choice: a call is required, and the output constrained, too");
    const bool one = tools.choice == ToolChoice::function;
    request.message.calls = one ? CallFormat::arguments : CallFormat::list;
    request.message.function = tools.function;
    return text;
  }
  request.message.calls = model.call_format();
  if (request.message.calls == CallFormat::none)
    refuse_unsupported(
        "tools", cat("tools: the format of the model's calls is not known; start the server "
                     "with --tool-call-parser (",
                     join(call_format_names(), ", "), "), or set tool_choice to \"required\""));
  // The markers of calls are special tokens of some models.
  request.skip_special = false;
  return std::nullopt;
}

/// What stands before the constrained part of an answer to `prompt`.
Reasoning reasoning_before(const MessageFormat& message, std::string_view prompt) {
  if (message.reasoning == ReasoningFormat::none) return Reasoning::none;
  if (message.reasoning_open) return Reasoning::open;
  return closes_reasoning(prompt) ? Reasoning::none : Reasoning::optional;
}

void read_chat_prompt(RequestFields& fields, const ServedModel& model,
                      std::optional<ConstraintText> constraint, GenerationRequest& request) {
  const Tools tools = read_tools(fields);
  if (auto call = read_tool_output(tools, model, constraint.has_value(), request))
    constraint = std::move(call);
  const bool add_special = fields.flag("add_special_tokens", false);
  Conversation conversation = read_conversation(fields);
  conversation.tools = tools.list;
  const std::string text = value_or_refuse("messages", model.render(std::move(conversation)));
  request.prompts.push_back(value_or_refuse("messages", model.encode(text, add_special)));
  request.prompt_texts.push_back(text);
  request.message.reasoning = model.reasoning_format();
  request.message.reasoning_open =
      request.message.reasoning == ReasoningFormat::deepseek_r1 || opens_reasoning(text);
  if (!constraint) return;
  constraint->before = reasoning_before(request.message, text);
  request.constraint = value_or_refuse(constraint->field, model.constrain(*constraint));
}

void read_completion_prompts(RequestFields& fields, const ServedModel& model,
                             const std::optional<ConstraintText>& constraint,
                             GenerationRequest& request) {
  if (constraint)
    request.constraint = value_or_refuse(constraint->field, model.constrain(*constraint));
  request.echo = fields.flag("echo", false);
  Prompts prompts = read_prompts(fields, "prompt", fields.flag("add_special_tokens", true), model);
  request.prompts = std::move(prompts.ids);
  request.prompt_texts = std::move(prompts.texts);
}

std::optional<std::int64_t> read_max_tokens(RequestFields& fields, Endpoint endpoint,
                                            std::int64_t context) {
  const auto most = std::max<std::int64_t>(context, 1 << 30);
  const auto newer = fields.integer("max_completion_tokens", 0, most);
  const auto max_tokens = fields.integer("max_tokens", 0, most);
  const auto predicted = fields.integer("n_predict", -1, most);
  if (newer) return newer;
  if (max_tokens) return max_tokens;
  if (predicted) return *predicted < 0 ? std::nullopt : predicted;
  return endpoint == Endpoint::chat ? std::nullopt : std::optional(default_completion_tokens);
}

/// Checks a prompt's length and returns the limit of its output.
std::int32_t output_limit(std::size_t prompt_tokens, std::optional<std::int64_t> max_tokens,
                          const ServedModel& model, const std::string& field) {
  const auto length = static_cast<std::int64_t>(prompt_tokens);
  if (length == 0) refuse(field, cat(field, ": the prompt has no tokens"));
  const std::int64_t room = model.context() - length;
  const std::int64_t wanted = max_tokens.value_or(std::max<std::int64_t>(room, 1));
  if (wanted > room || room < 0) {
    throw ApiFailure(400, {cat("This model's maximum context length is ", model.context(),
                               " tokens. However, you requested ", length + wanted, " tokens (",
                               length, " in the prompt, ", wanted, " for the completion). ",
                               "Reduce the length of the prompt or max_tokens."),
                           "invalid_request_error", field, "context_length_exceeded"});
  }
  return static_cast<std::int32_t>(wanted);
}

void read_lengths(RequestFields& fields, const ServedModel& model, GenerationRequest& request) {
  const auto max_tokens = read_max_tokens(fields, request.endpoint, model.context());
  const std::string field = request.endpoint == Endpoint::chat ? "messages" : "prompt";
  const Truncation truncation = read_truncation(fields, model.context());
  const std::int64_t room = model.context() - max_tokens.value_or(1);
  bool cut = false;
  for (auto& prompt : request.prompts) cut = truncation.apply(prompt, room) || cut;
  if (cut) request.prompt_texts.clear();
  for (const auto& prompt : request.prompts)
    request.max_tokens.push_back(output_limit(prompt.size(), max_tokens, model, field));
  request.generates = max_tokens != 0;
  const auto shortest = *std::ranges::min_element(request.max_tokens);
  if (request.params.min_new_tokens > shortest)
    refuse("min_tokens", cat("min_tokens is ", request.params.min_new_tokens,
                             ", more than the completion may have, which is ", shortest));
  if (request.prompts.size() * static_cast<std::size_t>(request.best_of) > max_sequences) {
    refuse("n", cat(request.prompts.size(), " prompts with ", request.best_of,
                    " completions each; allowed: ", max_sequences, " completions per request"));
  }
}

}  // namespace

GenerationRequest read_generation_request(const Json& body, Endpoint endpoint,
                                          const ServedModel& model, UnknownFields& unknown) {
  RequestFields fields(
      body, fields_of(endpoint == Endpoint::chat ? "/v1/chat/completions" : "/v1/completions"));
  GenerationRequest request;
  request.endpoint = endpoint;
  auto constraint = read_constraint(fields);
  request.params = read_sampling(fields, model);
  request.allowed = read_allowed(fields, model);
  read_stream(fields, request);
  read_logprobs(fields, model, request);
  read_choices(fields, request);
  read_output(fields, model, request);
  if (endpoint == Endpoint::chat) {
    read_chat_only(fields, request);
    read_chat_prompt(fields, model, std::move(constraint), request);
  } else {
    read_completion_prompts(fields, model, constraint, request);
  }
  read_lengths(fields, model, request);
  if (request.params.report_masks && !request.allowed && !request.constraint.source)
    request.mask_bytes =
        std::max<std::int64_t>(1, request.params.max_mask_bytes(model.vocabulary()));
  check_products(request);
  unknown = fields.unknown();
  return request;
}

}  // namespace troupe::launch::serve::api
