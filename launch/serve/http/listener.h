// Listener: a socket that accepts connections.
#pragma once

#include <optional>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/files/descriptor.h"

namespace troupe::launch::serve::http {

class Listener {
 public:
  /// Listens at a numeric address, or at 127.0.0.1 for "localhost". Port 0: a free one. Errc::usage
  /// for another host; Errc::io if the address is in use or not of this host.
  static Result<Listener> listen(const std::string& host, int port);

  /// Listens at a Unix-domain socket, which only this user can open (mode 0600). A socket whose
  /// server has ended is replaced; a link is not followed. Errc::usage for a path that is too long;
  /// Errc::io if there is a server or another file.
  static Result<Listener> listen_unix(const std::string& path);

  int descriptor() const { return socket_.get(); }
  int port() const { return port_; }
  /// "127.0.0.1:8000", "[::1]:8000", or a path
  const std::string& address() const { return address_; }

  struct Accepted {
    int socket = -1;  ///< non-blocking, without Nagle's algorithm; owned by the caller
    std::string client;
    /// The IPv4 address, the first 64 bits of an IPv6 address, or "unix".
    std::string network;
  };
  /// The next connection that waits, or nothing. If the process has no descriptor left, connections
  /// are accepted and closed, so that the listener does not stay readable.
  std::optional<Accepted> accept();
  /// From now on clients are refused by the system. Removes a Unix-domain socket.
  void close();

 private:
  Listener() = default;
  Descriptor socket_, spare_;
  int port_ = 0;
  bool unix_ = false;
  std::string address_;
};

}  // namespace troupe::launch::serve::http
