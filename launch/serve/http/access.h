// ApiKeys: which clients may send requests; and the rules for listening beyond loopback.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "launch/serve/http/request.h"

namespace troupe::launch::serve::http {

/// The keys of a server, as SHA-256 sums. Without keys every client is accepted.
class ApiKeys {
 public:
  ApiKeys() = default;
  /// Reads a file of lines `KEY` or `NAME KEY`; empty lines and lines that begin with `#` are
  /// skipped. A key has 16 to 256 visible ASCII characters, a name letters, digits and `_-.`; keys
  /// without a name are called `key1`, `key2`, ... by their line. Errc::usage unless the file is a
  /// regular file that belongs to the user or root and only its owner can read or write it (mode
  /// 0600 or 0400); Errc::bad_input for malformed or repeated keys and for a file without keys.
  static Result<ApiKeys> read(const std::string& path);

  bool empty() const { return keys_.empty(); }
  /// The names, in the order of the file.
  std::vector<std::string> names() const;
  /// The name of the key in the value of an Authorization header ("Bearer KEY"), or nothing. The
  /// time does not depend on the position of the first difference, nor on which key matches.
  std::optional<std::string> name_of(std::string_view authorization) const;
  /// The same for a value that is the key itself.
  std::optional<std::string> name_of_key(std::string_view key) const;

 private:
  using Sum = std::string;  // 64 hexadecimal digits
  struct Key {
    std::string name;
    Sum sum;
  };
  Result<> add(std::string_view line, std::size_t number, const std::string& path);
  std::vector<Key> keys_;
};

/// The first key of a file for ApiKeys::read(), for a client; keys of other servers may have other
/// lengths. Errors of ApiKeys::read().
Result<std::string> read_client_key(const std::string& path);

/// Whether a numeric address (or "localhost") is one of this host only.
bool loopback(std::string_view host);

/// Errc::usage if a server at `host` would be reachable from other hosts without keys, or with keys
/// in the clear.
Result<> check_exposure(const std::string& host, bool keys, bool tls, bool behind_tls_proxy);

/// Whether the Host field of a request names this host (DNS rebinding: a web page elsewhere whose
/// name resolves to 127.0.0.1 sends its own name). Checked on loopback without keys. The whole
/// field counts: a name, or an address in brackets, and at most a port behind it.
bool names_loopback(std::string_view host_field);

/// Whether a browser sent the request for a page that is not of this server: `Sec-Fetch-Site` is
/// neither `same-origin` nor `none`, or `Origin` is neither that of the Host field nor a loopback
/// name with the server's own port. Programs send neither field. Checked without keys, because a
/// page may send simple requests (POST with text/plain) to any address without asking.
bool cross_site(const Request& request, int port);

}  // namespace troupe::launch::serve::http
