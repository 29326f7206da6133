// A load generator for HTTP servers: one thread and many connections.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::benchmarks {

struct HttpLoad {
  std::string host = "127.0.0.1";
  int port = 0;
  int connections = 64;
  double seconds = 5;
  /// Requests per second of an open loop; 0: every connection sends its next request when it has
  /// the response.
  double rate = 0;
  std::string request;            ///< the bytes of one request
  std::int64_t max_requests = 0;  ///< 0: as many as the time allows
};

struct HttpResult {
  double seconds = 0;
  std::int64_t failed = 0;  ///< connections that ended, and malformed responses
  std::int64_t events = 0;  ///< lines "data: "
  /// Latencies in ms. In an open loop they count from the moment at which the request was due.
  std::vector<double> ok, refused, other;  ///< status 200, 429, any other
  std::int64_t with_retry_after = 0;       ///< of `refused`
};

/// Opens all connections, then sends requests. Errc::io if the server cannot be reached.
Result<HttpResult> run_load(const HttpLoad& load);

/// The value below which `share` of the values lie; 0 without values.
double quantile(std::vector<double> values, double share);

}  // namespace troupe::benchmarks
