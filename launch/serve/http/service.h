// Service: what the connections of one server share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "launch/serve/http/access.h"
#include "launch/serve/http/access_log.h"
#include "launch/serve/http/limits.h"
#include "launch/serve/http/request_parser.h"
#include "launch/serve/http/router.h"

namespace troupe::launch::serve::http {

/// Every function may be called from any thread.
class IdleConnections {
 public:
  using Ticket = std::uint64_t;

  /// The connection waits from now on. `close` is called at most once, if it is chosen; it must not
  /// wait.
  Ticket add(std::function<void()> close);
  /// False if the connection has been chosen: it must not begin a request.
  bool remove(Ticket ticket);
  /// Chooses the connection that has waited longest. False if there is none. What it waits for does
  /// not matter: a new connection, whose request is on its way, would otherwise be chosen before
  /// old ones that have sent a part of theirs.
  bool close_longest();

 private:
  std::mutex mutex_;
  Ticket next_ = 0;
  std::map<Ticket, std::function<void()>> waiting_;
};

struct Service {
  ServerLimits limits;
  Router router;
  ApiKeys keys;
  std::shared_ptr<AccessLog> log;  ///< may be nullptr
  bool loopback_names_only = false;
  int port = 0;  ///< 0: a Unix-domain socket
  IdleConnections idle;
  std::shared_ptr<std::atomic<std::size_t>> body_bytes =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::shared_ptr<std::atomic<std::size_t>> answer_bytes =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::atomic<bool> draining = false;
  std::atomic<std::uint64_t> connections = 0, requests = 0, refused = 0, malformed = 0,
                             timeouts = 0, slow = 0, gave_way = 0;
  std::atomic<std::size_t> open = 0, active = 0;
  std::atomic<std::size_t> admitted = 0;  ///< of those that are open: not refused by a limit

  /// Sets the request's id, key and rest, and returns its route; or the response that refuses it:
  /// 421 for the name of another host, 403 for a page of another site, 401 without a key, 404 and
  /// 405.
  struct Admission {
    const Route* route = nullptr;
    Response refusal;
  };
  Admission admit(Request& request) const;

 private:
  std::optional<std::string> key_name(const Request& request) const;
};

/// The X-Request-Id of the request if it is 1 to 64 letters, digits, `_` and `-`; a new one
/// otherwise ("req-" and 16 hexadecimal digits, distinct within the process).
std::string request_id_of(const Request& request);

}  // namespace troupe::launch::serve::http
