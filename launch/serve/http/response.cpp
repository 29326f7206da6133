#include "launch/serve/http/response.h"

#include "engine/base/json.h"
#include "launch/serve/http/exchange.h"

namespace troupe::launch::http {

Response error_response(int status, const ErrorBody& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const char* type = status < 500 ? "invalid_request_error" : "internal_error";
  Json members;
  members.set("message", error.message)
      .set("type", error.type.empty() ? Json(type) : Json(error.type))
      .set("param", or_null(error.param))
      .set("code", or_null(error.code));
  Json body;
  body.set("error", std::move(members));
  return {.status = status, .body = body.dump()};
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

/// Notices that the last responder of an exchange is destroyed.
struct Responder::Guard {
  explicit Guard(std::shared_ptr<Exchange> answered) : exchange(std::move(answered)) {}
  Guard(const Guard&) = delete;
  ~Guard() { exchange->abandon(); }
  const std::shared_ptr<Exchange> exchange;
};

Responder::Responder(std::shared_ptr<Exchange> exchange)
    : guard_(std::make_shared<Guard>(std::move(exchange))) {
}

void Responder::respond(Response response) const {
  guard_->exchange->respond(std::move(response));
}

void Responder::begin_stream() const {
  guard_->exchange->begin_stream();
}

bool Responder::send_event(std::string_view data) const {
  return guard_->exchange->send_event(data);
}

void Responder::end_stream() const {
  guard_->exchange->end_stream();
}

void Responder::on_disconnect(std::function<void()> call) const {
  guard_->exchange->on_disconnect(std::move(call));
}

bool Responder::disconnected() const {
  return guard_->exchange->disconnected();
}

}  // namespace troupe::launch::http
