// Client: requests to an HTTP server, one connection each.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"

namespace troupe::launch::serve::http {

struct Url {
  bool tls = false;
  std::string host, port;
  std::string path;  ///< without a slash at its end
};

/// Reads http://HOST[:PORT][/PATH] or https://...; a numeric IPv6 address stands in brackets.
/// Errc::usage, also for user names, queries and fragments.
Result<Url> parse_url(std::string_view text);

struct ClientLimits {
  std::chrono::milliseconds connect{10'000};   ///< for each step of connecting
  std::chrono::milliseconds silence{300'000};  ///< until the next bytes of the response
  std::size_t body = std::size_t{64} << 20;    ///< bytes of a response
};

struct ClientRequest {
  std::string method = "GET";
  std::string path;  ///< after that of the URL
  std::string body;  ///< JSON
};

struct ClientResponse {
  int status = 0;
  std::string body;  ///< what on_body did not receive
};

struct ClientCalls {
  /// Receives the body of a response with status 200 as it arrives; without it, the response has
  /// it.
  std::function<void(std::string_view)> on_body;
  /// Asked ten times a second; true ends the request.
  std::function<bool()> stop;
};

class Client {
 public:
  /// `key`: sent as Authorization: Bearer; "": none.
  Client(Url url, std::string key, ClientLimits limits = {});

  /// Sends a request and reads its response. Certificates are verified against those of the system,
  /// or of the file that the environment variable SSL_CERT_FILE names. Errc::io when the connection
  /// fails, closed when it ends within the response, timeout, cancelled by `stop`, full for a body
  /// that is too long.
  Result<ClientResponse> send(const ClientRequest& request, const ClientCalls& calls = {}) const;
  const Url& url() const { return url_; }

 private:
  Url url_;
  std::string key_;
  ClientLimits limits_;
};

}  // namespace troupe::launch::serve::http
