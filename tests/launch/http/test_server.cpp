#include "tests/launch/http/test_server.h"

#include <chrono>
#include <utility>

#include "engine/base/json/json.h"

namespace troupe::launch::serve::http {

namespace {

void answer_json(const serve::http::Request& request, const serve::http::Responder& responder) {
  const auto parsed = parse_json(request.body, "the body", {.depth = 32, .bytes = 1 << 20});
  if (parsed)
    responder.respond({.body = parsed->dump()});
  else
    responder.respond(serve::http::error_response(400, {parsed.error().what}));
}

}  // namespace

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

serve::http::Router test_routes(TestServer& test) {
  const auto hold = [&test](const serve::http::Request&, const serve::http::Responder& responder) {
    responder.on_disconnect([&test] { ++test.disconnects; });
    const std::lock_guard lock(test.mutex);
    test.held.push_back(responder);
  };
  const auto text = [](std::string body) {
    return [body](const serve::http::Request&, const serve::http::Responder& responder) {
      responder.respond({.content_type = "text/plain", .body = body});
    };
  };
  serve::http::Router router;
  router.add({"GET", "/health", text("ok"), serve::http::Access::open})
      .add({"POST", "/echo",
            [](const serve::http::Request& request, const serve::http::Responder& responder) {
              responder.respond({.content_type = "text/plain", .body = request.body});
            }})
      .add({"POST", "/json", answer_json})
      .add({"GET", "/forbidden",
            [&test](const serve::http::Request&, const serve::http::Responder& responder) {
              ++test.forbidden;
              responder.respond({.body = "{}"});
            }})
      .add({"POST", "/hold", hold})
      .add({"GET", "/stream", hold})
      .add({"GET", "/drop", [](const serve::http::Request&, const serve::http::Responder&) {}})
      .add({"GET", "/models/*",
            [](const serve::http::Request& request, const serve::http::Responder& responder) {
              responder.respond({.body = request.rest});
            }});
  return router;
}

TestServer::TestServer(serve::http::ServerOptions options, serve::http::ApiKeys keys,
                       std::shared_ptr<serve::http::AccessLog> log) {
  auto started = serve::http::Server::start(std::move(options), test_routes(*this), std::move(keys),
                                            std::move(log));
  if (!started) throw Failure(started.error());
  server = std::move(*started);
}

std::optional<serve::http::Responder> TestServer::take_held() {
  std::optional<serve::http::Responder> taken;
  eventually([&] {
    const std::lock_guard lock(mutex);
    if (held.empty()) return false;
    taken = held.front();
    held.erase(held.begin());
    return true;
  });
  return taken;
}

}  // namespace troupe::launch::serve::http
