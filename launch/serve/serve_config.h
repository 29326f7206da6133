// The section `serve` of a run file: the HTTP server of the rollouts of a run.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/json/fields.h"
#include "engine/base/json/ranges.h"

namespace troupe::launch::serve {

/// None of these settings changes the results of a run.
struct ServeConfig {
  std::string listen;
  std::string model_name;
  std::string api_key_file;
  std::string tls_cert, tls_key;
  bool behind_tls_proxy = false;
  std::int64_t threads = 1;
  std::int64_t max_batch = 64;
  std::int64_t max_waiting = 1024;
  std::int64_t cache_tokens = 0;
  std::int64_t request_timeout = 600;

  static void each_field(auto& self, auto&& field) {
    field(
        "listen", self.listen,
        "HOST:PORT, PORT of 127.0.0.1, or unix:PATH, a Unix-domain socket that only this user can "
        "open, at which the rollouts serve the OpenAI API with their "
        "current weights (serving.md#rollouts-of-a-run); 0: any free port; in a cluster rollout "
        "N listens at PORT + N, or from the second on at PATH.N; empty: no server");
    field("model_name", self.model_name, "the model's name in requests and answers; empty: model");
    field("api_key_file", self.api_key_file, "file with the keys of clients, mode 0600");
    field("tls_cert", self.tls_cert, "certificate chain (PEM)");
    field("tls_key", self.tls_key, "private key (PEM)");
    field("behind_tls_proxy", self.behind_tls_proxy, "a proxy on another host ends TLS");
    field("threads", self.threads, Range{1, 1024},
          "threads of each server's own model, beside those of the run");
    field("max_batch", self.max_batch, Range{1, 4096}, "requested sequences generated at a time");
    field("max_waiting", self.max_waiting, Range{1, 1 << 20},
          "sequences that may wait; beyond it requests get status 429");
    field("cache_tokens", self.cache_tokens, Range{0, 2147483632},
          "tokens in the server's cache of keys and values; 0: enough for the batch, at most 1 "
          "GiB");
    field("request_timeout", self.request_timeout, Range{1, 1 << 20},
          "seconds after which a request is given up");
  }
};

/// Where serve.listen says: HOST:PORT, [HOST]:PORT, PORT of 127.0.0.1, or unix:PATH.
struct ListenAddress {
  std::string host = "127.0.0.1";
  int port = 0;
  std::string unix_socket;  ///< a path instead of host and port
};
/// Errc::usage.
Result<ListenAddress> listen_address(const std::string& text);
/// The address of rollout `number`, from 0, as serve.listen. Errc::usage.
Result<std::string> listener_of(const std::string& text, int number);

}  // namespace troupe::launch::serve
