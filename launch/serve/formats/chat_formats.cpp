#include "launch/serve/formats/chat_formats.h"

#include <utility>

#include "launch/serve/formats/message_answer.h"
#include "launch/serve/formats/message_request.h"
#include "launch/serve/formats/response_answer.h"
#include "launch/serve/formats/response_request.h"

namespace troupe::launch::serve::formats {

namespace {

std::unique_ptr<api::AssembledAnswer> response_answer(Json repeated,
                                                      const api::GenerationRequest& request,
                                                      const std::string& model,
                                                      const std::string& id) {
  return std::make_unique<ResponseAnswer>(std::move(repeated), request, model, id);
}

std::unique_ptr<api::AssembledAnswer> message_answer(const Json&,
                                                     const api::GenerationRequest& request,
                                                     const std::string& model,
                                                     const std::string& id) {
  return std::make_unique<MessageAnswer>(request, model, id);
}

api::TranslatedRequest translated_response(const Json& body, const api::ServedModel&) {
  return read_response_request(body);
}

api::TranslatedRequest translated_message(const Json& body, const api::ServedModel& model) {
  return read_message_request(body, model, false);
}

api::TranslatedRequest translated_count(const Json& body, const api::ServedModel& model) {
  return read_message_request(body, model, true);
}

}  // namespace

std::vector<api::ChatFormat> chat_formats() {
  const auto own_form = std::make_shared<const http::ClientForm>(
      http::ClientForm{.key_field = "x-api-key", .error = anthropic_error});
  std::vector<api::ChatFormat> formats;
  formats.push_back({.path = "/v1/responses",
                     .form = nullptr,
                     .read = translated_response,
                     .names = response_field_names(),
                     .answer = response_answer});
  formats.push_back({.path = "/v1/messages",
                     .form = own_form,
                     .read = translated_message,
                     .names = message_field_names(),
                     .answer = message_answer});
  formats.push_back({.path = "/v1/messages/count_tokens",
                     .form = own_form,
                     .read = translated_count,
                     .names = message_field_names(),
                     .answer = nullptr});
  return formats;
}

}  // namespace troupe::launch::serve::formats
