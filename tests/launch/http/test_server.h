// A server with the routes of the tests.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "launch/serve/http/server.h"

namespace troupe::launch::serve::http {

/// Routes: GET /health (open), POST /echo (the body), POST /json (the body parsed and written
/// again, or 400), GET /forbidden (counts), POST /hold and GET /stream (kept in `held`),
/// GET /drop (never answered), GET /models/* (what `*` stands for).
struct TestServer {
  explicit TestServer(serve::http::ServerOptions options = {}, serve::http::ApiKeys keys = {},
                      std::shared_ptr<serve::http::AccessLog> log = nullptr);
  int port() const { return server->port(); }
  /// The next responder of /hold or /stream; waits for it up to five seconds.
  std::optional<serve::http::Responder> take_held();

  std::atomic<int> forbidden = 0, disconnects = 0;
  std::mutex mutex;
  std::vector<serve::http::Responder> held;
  std::unique_ptr<serve::http::Server> server;  // last: ends before what its handlers use
};

serve::http::Router test_routes(TestServer& test);
/// Waits until `condition` holds; false after five seconds.
bool eventually(const std::function<bool()>& condition);

}  // namespace troupe::launch::serve::http
