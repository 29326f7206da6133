#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {

void refuse(const std::string& field, const std::string& message) {
  throw ApiFailure(400, {message, "invalid_request_error", field, ""});
}

void refuse_unsupported(const std::string& field, const std::string& message) {
  throw ApiFailure(400, {message, "invalid_request_error", field, "unsupported_parameter"});
}

int status_of(Errc code) {
  switch (code) {
    case Errc::full:
      return 429;
    case Errc::closed:
    case Errc::timeout:
      return 503;
    case Errc::not_found:
      return 404;
    case Errc::internal:
    case Errc::io:
    case Errc::corrupt:
      return 500;
    case Errc::usage:
    case Errc::bad_input:
    case Errc::unsupported:
    case Errc::cancelled:
      return 400;
  }
  return 500;
}

http::ErrorBody error_body(const Error& error) {
  const int status = status_of(error.code);
  if (status == 429) return {error.what, "rate_limit_error", "", "rate_limit_exceeded"};
  return {error.what, status < 500 ? "invalid_request_error" : "server_error", "", ""};
}

http::Response error_answer(const Error& error) {
  const int status = status_of(error.code);
  http::Response response = http::error_response(status, error_body(error));
  if (status == 429 || status == 503) response.headers.push_back({"retry-after", "1"});
  return response;
}

}  // namespace troupe::launch::serve::api
