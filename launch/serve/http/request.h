// Request: an HTTP request, as handlers receive it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launch/serve/http/held_bytes.h"

namespace troupe::launch::serve::http {

class Responder;

struct HeaderField {
  std::string name;  ///< in lower case
  std::string value;
};

/// A complete request. Its head has passed the parser (request_parser.h), the router (router.h) and
/// the check of the API key (access.h); its body is any bytes up to the limit.
struct Request {
  std::string id;      ///< X-Request-Id of the client, if it is well-formed, or a new one
  std::string method;  ///< "GET", "POST", ...
  std::string path;    ///< raw, without the query: "/v1/models"
  std::string query;   ///< raw, without '?'. Never contains credentials that the server accepts.
  std::string rest;    ///< what the `*` at the end of the route's path stands for
  std::string client;  ///< numeric address and port of the peer: "127.0.0.1:51234"
  std::string key;     ///< name of the API key, or "" without keys and on open routes
  std::vector<HeaderField> headers;
  std::string body;
  std::shared_ptr<HeldBytes> held;  ///< counts the body as long as there is a copy of the request
  bool keep_alive = false;
  std::chrono::steady_clock::time_point received = {};  ///< when the first byte arrived

  /// The value of the first field of this name (lower case), or nullptr.
  const std::string* header(std::string_view name) const {
    for (const HeaderField& field : headers)
      if (field.name == name) return &field.value;
    return nullptr;
  }
};

/// Handles one request. It is called on a thread of the server, which serves other connections as
/// well: it must not wait or compute for long, but keep the responder and answer from another
/// thread.
using Handler = std::function<void(Request, Responder)>;

}  // namespace troupe::launch::serve::http
