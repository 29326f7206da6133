// Server: an HTTP/1.1 server with threads of its own. Requests are read and responses written
// there; handlers answer from any thread (response.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/errors/error.h"
#include "launch/serve/http/access.h"
#include "launch/serve/http/access_log.h"
#include "launch/serve/http/limits.h"
#include "launch/serve/http/router.h"

namespace troupe::launch::serve::http {

struct ServerOptions {
  std::string host = "127.0.0.1";  ///< numeric address, or localhost
  int port = 0;                    ///< 0: a free one
  std::string unix_socket;         ///< path of a socket of this user, instead of host and port
  std::string tls_cert, tls_key;   ///< PEM files; both or neither
  bool behind_tls_proxy = false;   ///< a proxy on another host ends TLS
  int threads = 2;
  ServerLimits limits;
};

/// Counts since the start.
struct ServerCounts {
  std::uint64_t connections = 0;  ///< accepted
  std::uint64_t requests = 0;     ///< answered or cut off
  std::uint64_t refused = 0;      ///< connections beyond a limit
  std::uint64_t malformed = 0;    ///< requests that the parser refused
  std::uint64_t timeouts = 0;     ///< connections closed by a deadline
  std::uint64_t slow = 0;         ///< streams ended because their reader is too slow
  std::uint64_t gave_way = 0;     ///< idle connections closed because others came
  std::size_t body_bytes = 0;     ///< of bodies that arrive, wait and are read now
  std::size_t open = 0;           ///< connections now
  std::size_t active = 0;         ///< requests that are handled now
};

class Server {
 public:
  /// Listens and serves from now on. `log` may be nullptr. Errc::usage if the address is not
  /// loopback without keys or without TLS, or TLS files do not match; Errc::io if the address
  /// cannot be used.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Router router, ApiKeys keys,
                                               std::shared_ptr<AccessLog> log);
  Server(const Server&) = delete;
  ~Server();  ///< closes all connections; their on_disconnect() is called

  int port() const;
  /// "http://127.0.0.1:8000", or the path of a socket
  std::string url() const;
  ServerCounts counts() const;

  /// Accepts no more connections, closes idle ones, and waits until the requests that are handled
  /// are answered, at most `deadline`. Then closes the rest and returns whether all were answered.
  bool drain(std::chrono::milliseconds deadline);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::launch::serve::http
