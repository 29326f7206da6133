// How handlers read and answer requests with JSON bodies.
#pragma once

#include <functional>

#include "engine/base/json/json.h"
#include "launch/serve/http/request.h"
#include "launch/serve/http/response.h"

namespace troupe::launch::serve::api {

http::Response json_answer(const Json& body);

/// The body. Throws ApiFailure.
Json parse_body(const http::Request& request);

/// Runs `task`; what it throws is the answer.
void answer_failures(const http::Request& request, const http::Responder& responder,
                     const std::function<void()>& task);

}  // namespace troupe::launch::serve::api
