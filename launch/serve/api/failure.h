// ApiFailure: a request that is answered with an error object.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "engine/base/errors/error.h"
#include "launch/serve/http/response.h"

namespace troupe::launch::serve::api {

/// Thrown while a request is read; caught where it is answered (api.cpp).
class ApiFailure : public std::runtime_error {
 public:
  ApiFailure(int status, http::ErrorBody error)
      : std::runtime_error(error.message), status_(status), error_(std::move(error)) {}
  int status() const { return status_; }
  const http::ErrorBody& error() const { return error_; }
  http::Response response() const { return http::error_response(status_, error_); }

 private:
  int status_;
  http::ErrorBody error_;
};

/// Status 400 with the name of the field, such as "messages[2].role".
[[noreturn]] void refuse(const std::string& field, const std::string& message);
/// Status 400 for a field that OpenAI or vLLM know and troupe does not support.
[[noreturn]] void refuse_unsupported(const std::string& field, const std::string& message);

/// The value, or what the engine says about a field, which is the client's mistake.
template <class T>
T value_or_refuse(const std::string& field, Result<T> result) {
  if (!result) refuse(field, result.error().what);
  return std::move(*result);
}

/// The status and error object for an error of the engine: 429 for full, 503 for closed and
/// timeout, 500 for internal errors, 400 for the others.
int status_of(Errc code);
http::ErrorBody error_body(const Error& error);
/// With Retry-After for 429 and 503.
http::Response error_answer(const Error& error);

}  // namespace troupe::launch::serve::api
