#include "launch/serve/http/response.h"

#include "engine/base/json/json.h"
#include "launch/serve/http/exchange.h"

namespace troupe::launch::serve::http {

Response error_response(int status, const ErrorBody& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  // 505 is about the version that the client chose.
  const bool of_client = status < 500 || status == 505;
  const char* type = of_client ? "invalid_request_error" : "internal_error";
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
  static constexpr std::pair<int, std::string_view> reasons[] = {
      {200, "OK"},
      {204, "No Content"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {505, "HTTP Version Not Supported"},
  };
  for (const auto& [number, reason] : reasons)
    if (number == status) return reason;
  return "";
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

bool Responder::send_events(const std::vector<Event>& events) const {
  return guard_->exchange->send_events(events);
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

}  // namespace troupe::launch::serve::http
