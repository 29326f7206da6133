#include "launch/serve/api/answering.h"

#include <exception>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {

http::Response json_answer(const Json& body) {
  return {.body = body.dump()};
}

Json parse_body(const http::Request& request) {
  auto body = parse_json(request.body, "the body");
  if (!body) refuse("", body.error().what);
  return std::move(*body);
}

void answer_failures(const http::Request& request, const http::Responder& responder,
                     const std::function<void()>& task) {
  try {
    task();
  } catch (const ApiFailure& failure) {
    responder.respond(failure.response());
  } catch (const Failure& failure) {
    responder.respond(error_answer(failure.error()));
  } catch (const std::exception& problem) {
    log_error(cat("request ", request.id, ": ", problem.what()));
    responder.respond(error_answer({Errc::internal, "an internal error; see the server's log"}));
  }
}

}  // namespace troupe::launch::serve::api
