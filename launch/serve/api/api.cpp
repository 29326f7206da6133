#include "launch/serve/api/api.h"

#include <algorithm>
#include <initializer_list>

#include "engine/base/log/log.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/serve/api/answering.h"
#include "launch/serve/api/chat_messages.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/pooling_call.h"
#include "launch/serve/api/request_fields.h"
#include "launch/serve/api/token_json.h"
#include "launch/serve/api/tool_fields.h"

namespace troupe::launch::serve::api {

namespace {

/// One thread is left for others while a client has requests that take long.
constexpr Workers::Limits worker_limits{.threads = 3, .threads_per_client = 2};
/// Unknown fields whose names the log receives; clients choose them.
constexpr std::size_t max_logged_fields = 100;

/// A part of a path with its %XX replaced (RFC 3986, 2.1): names of models may have slashes.
std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view digits = text.substr(at + 1, 2);
    const auto value = parse_number<unsigned int>(digits, 16);
    if (text[at] == '%' && digits.size() == 2 && value) {
      out += static_cast<char>(*value);
      at += 2;
    } else {
      out += text[at];
    }
  }
  return out;
}

Json model_entry(const Served& served) {
  return Json::Object{{"id", served.name},
                      {"object", "model"},
                      {"created", served.created},
                      {"owned_by", "troupe"},
                      {"root", served.folder.empty() ? served.name : served.folder},
                      {"parent", served.parent.empty() ? Json() : Json(served.parent)},
                      {"max_model_len", served.model->context()}};
}

/// As the template of the model renders it.
std::string conversation_text(RequestFields& fields, const ServedModel& model) {
  Conversation conversation = read_conversation(fields);
  conversation.tools = read_tools(fields).list;
  return value_or_throw(model.render(std::move(conversation)));
}

/// The whole text of one conversation or prompt of /tokenize.
std::vector<std::int32_t> tokens_to_count(RequestFields& fields, const ServedModel& model) {
  if (fields.find("messages") == nullptr) {
    const auto prompt = fields.text("prompt");
    if (!prompt) refuse("prompt", "prompt or messages is missing");
    return value_or_throw(model.encode(*prompt, fields.flag("add_special_tokens", true)));
  }
  if (fields.find("prompt") != nullptr) refuse("prompt", "prompt is not allowed with messages");
  const std::string text = conversation_text(fields, model);
  return value_or_throw(model.encode(text, fields.flag("add_special_tokens", false)));
}

constexpr const char* generates_nothing =
    "the model gives scores or embeddings and generates no text";

bool has_any(const Json& body, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) {
    const Json* found = body.find(name);
    return found != nullptr && !found->is_null();
  });
}

[[noreturn]] void refuse_invocation(const char* expected) {
  refuse("", cat("/invocations: the body has the members of no endpoint; expected ", expected));
}

/// Of /invocations: the endpoint of a request for text, in the order of vLLM.
Endpoint generation_target(const Json& body) {
  if (has_any(body, {"messages"})) return Endpoint::chat;
  if (has_any(body, {"prompt", "prompt_embeds"})) return Endpoint::completion;
  refuse_invocation("messages (of /v1/chat/completions) or prompt (of /v1/completions)");
}

/// The same for scores and embeddings.
Pooling pooling_target(const Json& body, const ServedModel& model) {
  const bool scores = model.labels() > 0 && !model.classifies_tokens();
  if (has_any(body, {"input", "messages"}))
    return scores                ? Pooling::classify
           : model.labels() == 0 ? Pooling::embeddings
                                 : Pooling::pooling;
  if (!scores) refuse_invocation("input or messages");
  if (has_any(body, {"query"})) return Pooling::rerank;
  if (has_any(body, {"text_1", "queries", "data_1"})) return Pooling::score;
  refuse_invocation("input or messages (of /classify), query (of /rerank) or text_1 (of /score)");
}

}  // namespace

Api::Api(const ModelSet& models, std::string version, std::vector<ChatFormat> formats)
    : models_(models),
      version_(std::move(version)),
      formats_(std::move(formats)),
      workers_(worker_limits) {
}

http::Router Api::routes() {
  http::Router router;
  add_probes(router);
  add_models(router);
  add_generation(router, "/v1/completions", Endpoint::completion);
  add_generation(router, "/v1/chat/completions", Endpoint::chat);
  add_pooling(router, "/pooling", Pooling::pooling);
  add_pooling(router, "/classify", Pooling::classify);
  add_pooling(router, "/score", Pooling::score);
  add_pooling(router, "/v1/score", Pooling::score);
  add_pooling(router, "/rerank", Pooling::rerank);
  add_pooling(router, "/v1/rerank", Pooling::rerank);
  add_pooling(router, "/v2/rerank", Pooling::rerank);
  add_pooling(router, "/v1/embeddings", Pooling::embeddings);
  add_invocations(router);
  for (const ChatFormat& each : formats_) add_format(router, each);
  add_answer(router, "/tokenize",
             [this](const http::Request& from, const Json& body) { return tokenize(from, body); });
  add_answer(router, "/detokenize", [this](const http::Request& from, const Json& body) {
    return detokenize(from, body);
  });
  add_answer(router, "/apply-template", [this](const http::Request& from, const Json& body) {
    const ServedPointer served = named_in(body);
    RequestFields fields(body, fields_of("/apply-template"));
    log_unknown(from, fields.unknown());
    return json_answer(Json::Object{{"prompt", conversation_text(fields, *served->model)}});
  });
  return router;
}

void Api::add_probes(http::Router& router) {
  const auto add = [&](const char* path, http::Access access,
                       std::function<http::Response()> answer, const char* method = "GET") {
    router.add({method, path,
                [answer = std::move(answer)](const http::Request&, const http::Responder& to) {
                  to.respond(answer());
                },
                access});
  };
  const auto well = [] { return http::Response{.content_type = "text/plain", .body = "ok\n"}; };
  add("/health", http::Access::open, well);
  add("/livez", http::Access::open, well);
  for (const char* method : {"GET", "POST"}) add("/ping", http::Access::open, well, method);
  add("/readyz", http::Access::key, [this, well] {
    return draining_ ? error_answer({Errc::closed, "the server is shutting down"}) : well();
  });
  add("/version", http::Access::key, [this] {
    return json_answer(Json::Object{{"version", version_}});
  });
  add("/load", http::Access::key, [this] {
    return json_answer(Json::Object{{"server_load", in_progress_->load()}});
  });
  add("/tokenizer_info", http::Access::key, [this] {
    const auto info = models_.first()->model->tokenizer_info();
    return info ? json_answer(*info) : error_answer(info.error());
  });
  add("/metrics", http::Access::key, [this] {
    return http::Response{
        .content_type = "text/plain; version=0.0.4; charset=utf-8",
        .body = metrics_.text(models_.counters(), models_.first()->model->name()) +
                (more_metrics_ ? more_metrics_() : "")};
  });
}

void Api::add_models(http::Router& router) {
  router.add(
      {"GET", "/v1/models", [this](const http::Request&, const http::Responder& to) {
         Json::Array entries;
         for (const ServedPointer& each : models_.all()) entries.push_back(model_entry(*each));
         to.respond(json_answer(Json::Object{{"object", "list"}, {"data", std::move(entries)}}));
       }});
  router.add({"GET", "/v1/models/*", [this](const http::Request& from, const http::Responder& to) {
                answer_failures(from, to, [&] {
                  const ServedPointer served =
                      named_in(Json::Object{{"model", percent_decoded(from.rest)}});
                  to.respond(json_answer(model_entry(*served)));
                });
              }});
}

void Api::add_refusal(http::Router& router, const std::string& path, const std::string& why,
                      const FormPointer& form) {
  const auto refuse_all = [path, why](const http::Request&, const Json&) {
    return http::error_response(400, {cat(path, " is not supported: ", why),
                                      "invalid_request_error", "", "unsupported_endpoint"});
  };
  add_answer(router, path, refuse_all, form);
}

void Api::log_unknown(const http::Request& request, const UnknownFields& unknown) {
  UnknownFields names;
  {
    const std::lock_guard lock(logged_mutex_);
    for (const std::string& name : unknown)
      if (logged_.size() < max_logged_fields && logged_.insert(name.substr(0, 64)).second)
        names.push_back(name);
  }
  if (names.empty()) return;
  log_info(cat("request ", request.id, ": unknown fields are ignored: ",
               quote(join(names, ", "), 200), "; each is named once"));
}

void Api::add_start(http::Router& router, const std::string& path, Start start,
                    const FormPointer& form) {
  const auto checked = [this, start = std::move(start)](const http::Request& from,
                                                        const http::Responder& to) {
    if (draining_) return to.respond(error_answer({Errc::closed, "the server is shutting down"}));
    const Json body = parse_body(from);
    start(named_in(body), from, body, to);
  };
  const auto handler = [this, checked](http::Request from, http::Responder to) {
    workers_.post(std::move(from), std::move(to), checked);
  };
  router.add({"POST", path, handler, http::Access::key, form});
}

void Api::generate(Endpoint endpoint, const ServedPointer& served, const http::Request& from,
                   const Json& body, const http::Responder& to) {
  UnknownFields unknown;
  auto request = read_generation_request(body, endpoint, *served->model, unknown);
  log_unknown(from, unknown);
  GenerationCall::start({served, metrics_, answers_, waiting_, results_, counted(), sampled_},
                        std::move(request), from, to);
}

void Api::pool(Pooling endpoint, const ServedPointer& served, const http::Request& from,
               const Json& body, const http::Responder& to) {
  UnknownFields unknown;
  auto request = read_pooling_request(body, endpoint, *served->model, unknown);
  log_unknown(from, unknown);
  PoolingCall::start(served, answers_, std::move(request), from, to, counted());
}

void Api::add_generation(http::Router& router, const std::string& path, Endpoint endpoint) {
  if (models_.first()->generation == nullptr) return add_refusal(router, path, generates_nothing);
  add_start(
      router, path,
      [this, endpoint](const ServedPointer& served, const http::Request& from, const Json& body,
                       const http::Responder& to) { generate(endpoint, served, from, body, to); });
}

void Api::add_invocations(http::Router& router) {
  const auto start = [this](ServedPointer served, const http::Request& from, const Json& body,
                            const http::Responder& to) {
    if (const std::string* adapter = from.header("x-amzn-sagemaker-adapter-identifier"))
      served = named_in(Json::Object{{"model", *adapter}});
    if (served->generation != nullptr)
      generate(generation_target(body), served, from, body, to);
    else
      pool(pooling_target(body, *served->model), served, from, body, to);
  };
  add_start(router, "/invocations", start);
}

void Api::add_format(http::Router& router, const ChatFormat& format) {
  if (models_.first()->generation == nullptr)
    return add_refusal(router, format.path, generates_nothing, format.form);
  if (!format.answer) return add_count(router, format);
  const auto start = [this, format](const ServedPointer& served, const http::Request& from,
                                    const Json& body, const http::Responder& to) {
    TranslatedRequest translated = format.read(body, *served->model);
    log_unknown(from, translated.unknown);
    UnknownFields unknown;
    auto request = with_own_names(format.names, [&] {
      return read_generation_request(translated.chat, Endpoint::chat, *served->model, unknown);
    });
    log_unknown(from, unknown);
    auto answer = format.answer(std::move(translated.repeated), request, served->name, from.id);
    GenerationCall::start({served, metrics_, answers_, waiting_, results_, counted(), sampled_},
                          std::move(request), from, to, std::move(answer));
  };
  add_start(router, format.path, start, format.form);
}

void Api::add_count(http::Router& router, const ChatFormat& format) {
  const auto count = [this, format](const http::Request& from, const Json& body) {
    const ServedPointer served = named_in(body);
    const TranslatedRequest translated = format.read(body, *served->model);
    log_unknown(from, translated.unknown);
    const auto tokens = with_own_names(format.names, [&] {
      RequestFields fields(translated.chat);
      return tokens_to_count(fields, *served->model);
    });
    return json_answer(Json::Object{{"input_tokens", std::ssize(tokens)}});
  };
  add_answer(router, format.path, count, format.form);
}

void Api::add_pooling(http::Router& router, const std::string& path, Pooling endpoint) {
  if (models_.first()->pooling == nullptr)
    return add_refusal(router, path,
                       "the server generates text with a language model; for embeddings start it "
                       "with --runner pooling");
  add_start(
      router, path,
      [this, endpoint](const ServedPointer& served, const http::Request& from, const Json& body,
                       const http::Responder& to) { pool(endpoint, served, from, body, to); });
}

void Api::add_answer(http::Router& router, const std::string& path, Answer answer,
                     const FormPointer& form) {
  const Workers::Task task = [answer = std::move(answer)](const http::Request& from,
                                                          const http::Responder& to) {
    to.respond(answer(from, parse_body(from)));
  };
  const auto handler = [this, task](http::Request from, http::Responder to) {
    workers_.post(std::move(from), std::move(to), task);
  };
  router.add({"POST", path, handler, http::Access::key, form});
}

std::shared_ptr<const void> Api::counted() {
  ++*in_progress_;
  return {nullptr, [count = in_progress_](const void*) { --*count; }};
}

/// The model that a request names, or the first one.
ServedPointer Api::named_in(const Json& body) const {
  const auto name = RequestFields(body).text("model");
  if (!name) return models_.first();
  if (auto found = models_.find(*name)) return found;
  std::vector<std::string> known;
  for (const ServedPointer& each : models_.all()) known.push_back(cat("`", each->name, "`"));
  throw ApiFailure(
      404, {cat("The model `", *name, "` does not exist; this server has ", join(known, ", "), "."),
            "invalid_request_error", "model", "model_not_found"});
}

http::Response Api::tokenize(const http::Request& from, const Json& body) {
  const ServedPointer served = named_in(body);
  const ServedModel& model = *served->model;
  RequestFields fields(body, fields_of("/tokenize"));
  log_unknown(from, fields.unknown());
  const auto tokens = tokens_to_count(fields, model);
  std::string text = cat("{\"count\":", tokens.size(), ",\"max_model_len\":", model.context(),
                         ",\"tokens\":", ids_text(tokens), ",\"token_strs\":");
  if (fields.flag("return_token_strs", false)) {
    char before = '[';
    for (const std::int32_t id : tokens) {
      text += std::exchange(before, ',');
      text += Json(model.tokenizer()->id_to_token(id)).dump();
    }
    text += before == '[' ? "[]" : "]";
  } else {
    text += "null";
  }
  text += '}';
  return {.body = std::move(text)};
}

http::Response Api::detokenize(const http::Request& from, const Json& body) {
  const ServedPointer served = named_in(body);
  const ServedModel& model = *served->model;
  RequestFields fields(body, fields_of("/detokenize"));
  log_unknown(from, fields.unknown());
  const auto tokens = fields.ids("tokens", model.vocabulary());
  if (!tokens) refuse("tokens", "tokens is missing");
  const bool skip = fields.flag("skip_special_tokens", false);
  if (model.tokenizer() == nullptr)
    return error_answer({Errc::unsupported, "the model has no tokenizer"});
  return json_answer(Json::Object{{"prompt", model.tokenizer()->decode(*tokens, skip)}});
}

}  // namespace troupe::launch::serve::api
