// The endpoints that have the answers of /v1/chat/completions in other formats.
#include <utility>

#include "launch/serve/api/answering.h"
#include "launch/serve/api/anthropic/message_answer.h"
#include "launch/serve/api/anthropic/message_request.h"
#include "launch/serve/api/api.h"
#include "launch/serve/api/responses/response_answer.h"
#include "launch/serve/api/responses/response_request.h"

namespace troupe::launch::api {

namespace {

std::shared_ptr<const http::Dialect> anthropic_dialect() {
  static const auto dialect = std::make_shared<const http::Dialect>(
      http::Dialect{.key_field = "x-api-key", .error = anthropic_error});
  return dialect;
}

}  // namespace

void Api::add_responses(http::Router& router, const std::string& path) {
  if (models_.first()->generation == nullptr) return add_refusal(router, path, generates_nothing);
  const auto start = [this](const ServedPointer& served, const http::Request& from,
                            const Json& body, const http::Responder& to) {
    TranslatedRequest translated = read_response_request(body);
    log_unknown(from, translated.unknown);
    auto request = read_translated(translated, response_field_names(), *served->model);
    auto answer = std::make_unique<ResponseAnswer>(std::move(translated.repeated), request,
                                                   served->name, from.id);
    GenerationCall::start({served, metrics_, answers_, waiting_, results_, sampled_},
                          std::move(request), from, to, std::move(answer));
  };
  add_start(router, path, start);
}

void Api::add_messages(http::Router& router, const std::string& path) {
  if (models_.first()->generation == nullptr)
    return add_refusal(router, path, generates_nothing, anthropic_dialect());
  const auto start = [this](const ServedPointer& served, const http::Request& from,
                            const Json& body, const http::Responder& to) {
    const TranslatedRequest translated = read_message_request(body, *served->model, false);
    log_unknown(from, translated.unknown);
    auto request = read_translated(translated, message_field_names(), *served->model);
    auto answer = std::make_unique<MessageAnswer>(request, served->name, from.id);
    GenerationCall::start({served, metrics_, answers_, waiting_, results_, sampled_},
                          std::move(request), from, to, std::move(answer));
  };
  add_start(router, path, start, anthropic_dialect());
}

void Api::add_message_count(http::Router& router, const std::string& path) {
  if (models_.first()->generation == nullptr)
    return add_refusal(router, path, generates_nothing, anthropic_dialect());
  const auto answer = [this](const http::Request& from, const Json& body) {
    const ServedPointer served = named_in(body);
    const TranslatedRequest translated = read_message_request(body, *served->model, true);
    log_unknown(from, translated.unknown);
    const auto tokens = with_own_names(message_field_names(), [&] {
      RequestFields fields(translated.chat);
      return tokens_to_count(fields, *served->model);
    });
    return json_answer(Json::Object{{"input_tokens", std::ssize(tokens)}});
  };
  add_answer(router, path, answer, anthropic_dialect());
}

}  // namespace troupe::launch::api
