// RequestParser: one HTTP/1.1 request from bytes, by the parser of Boost.Beast with stricter rules
// on top.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "launch/serve/http/limits.h"
#include "launch/serve/http/request.h"

namespace troupe::launch::serve::http {

/// Parses one request. RFC 9112 is applied without its allowances for old clients: bare LF, folded
/// fields, a missing or repeated Host, repeated or listed Content-Length, Content-Length beside
/// Transfer-Encoding, encodings other than `chunked`, targets other than a path (or `*` for
/// OPTIONS) and versions other than 1.0 and 1.1 are refused.
class RequestParser {
 public:
  enum class State {
    more,      ///< more bytes are needed
    header,    ///< the header is complete and a body follows; returned once
    complete,  ///< the request is complete
    failed,    ///< status() and message()
  };

  explicit RequestParser(const ServerLimits& limits);
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;

  /// Parses `bytes`, which begin with those that the previous call did not consume. `consumed`
  /// receives the number of bytes that the caller can drop. Not called after complete or failed.
  State feed(std::string_view bytes, std::size_t& consumed);

  /// What was parsed: everything of the header from State::header on, the body at
  /// State::complete. Fields of Request that do not come from the client's bytes are not set.
  Request& request();
  bool http11() const;
  bool header_done() const;
  /// Whether the client waits for "100 Continue" before it sends the body.
  bool expects_continue() const;

  int status() const;  ///< of State::failed: 400, 413, 417, 431 or 505
  const std::string& message() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::launch::serve::http
