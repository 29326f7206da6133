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

namespace troupe::launch::http {

/// Routes: GET /health (open), POST /echo (the body), POST /json (the body parsed and written
/// again, or 400), GET /forbidden (counts), POST /hold and GET /stream (kept in `held`),
/// GET /drop (never answered), GET /models/* (what `*` stands for).
struct TestServer {
  explicit TestServer(ServerOptions options = {}, ApiKeys keys = {},
                      std::shared_ptr<AccessLog> log = nullptr);
  int port() const { return server->port(); }
  /// The next responder of /hold or /stream; waits for it up to five seconds.
  std::optional<Responder> take_held();

  std::atomic<int> forbidden = 0, disconnects = 0;
  std::mutex mutex;
  std::vector<Responder> held;
  std::unique_ptr<Server> server;  // last: ends before what its handlers use
};

Router test_routes(TestServer& test);
/// Waits until `condition` holds; false after five seconds.
bool eventually(const std::function<bool()>& condition);

}  // namespace troupe::launch::http
