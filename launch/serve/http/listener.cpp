#include "launch/serve/http/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::launch::serve::http {

namespace {

/// A socket address of either family.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&storage); }
  sockaddr_in* v4() { return reinterpret_cast<sockaddr_in*>(&storage); }
  sockaddr_in6* v6() { return reinterpret_cast<sockaddr_in6*>(&storage); }

  std::string text() {
    if (storage.ss_family == AF_UNIX) return "unix";
    std::array<char, INET6_ADDRSTRLEN> name{};
    if (storage.ss_family == AF_INET6) {
      ::inet_ntop(AF_INET6, &v6()->sin6_addr, name.data(), name.size());
      return cat("[", name.data(), "]:", ntohs(v6()->sin6_port));
    }
    ::inet_ntop(AF_INET, &v4()->sin_addr, name.data(), name.size());
    return cat(name.data(), ":", ntohs(v4()->sin_port));
  }
};

/// What one client can choose its addresses from.
std::string network_of(SocketAddress& peer) {
  if (peer.storage.ss_family == AF_UNIX) return "unix";
  SocketAddress network = peer;
  if (network.storage.ss_family == AF_INET6) {
    std::memset(network.v6()->sin6_addr.s6_addr + 8, 0, 8);
    network.v6()->sin6_port = 0;
  } else {
    network.v4()->sin_port = 0;
  }
  return network.text();
}

std::optional<SocketAddress> parse_address(const std::string& host, int port) {
  const std::string numeric = host == "localhost" ? "127.0.0.1" : host;
  SocketAddress address;
  if (::inet_pton(AF_INET, numeric.c_str(), &address.v4()->sin_addr) == 1) {
    address.storage.ss_family = AF_INET;
    address.v4()->sin_port = htons(static_cast<std::uint16_t>(port));
    address.size = sizeof(sockaddr_in);
    return address;
  }
  if (::inet_pton(AF_INET6, numeric.c_str(), &address.v6()->sin6_addr) == 1) {
    address.storage.ss_family = AF_INET6;
    address.v6()->sin6_port = htons(static_cast<std::uint16_t>(port));
    address.size = sizeof(sockaddr_in6);
    return address;
  }
  return std::nullopt;
}

/// Whether a server listens at the socket.
bool has_listener(const sockaddr_un& address) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
             0 ||
         errno != ECONNREFUSED;
}

int open_null() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

}  // namespace

Result<Listener> Listener::listen(const std::string& host, int port) {
  if (port < 0 || port > 65535)
    return fail(Errc::usage, cat("port ", port, ": a port is 0 (any free one) to 65535"));
  auto address = parse_address(host, port);
  if (!address)
    return fail(Errc::usage, cat("host ", quote(host), ": give a numeric address or localhost"));
  Listener made;
  const auto failed = [&](const char* call) {
    return fail(Errc::io,
                cat("cannot listen at ", address->text(), ": ", call, ": ", std::strerror(errno)));
  };
  made.socket_ = Descriptor(
      ::socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made.socket_.open()) return failed("socket");
  const int fd = made.socket_.get(), on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address->storage.ss_family == AF_INET6)
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (::bind(fd, address->any(), address->size) != 0) return failed("bind");
  if (::listen(fd, 1024) != 0) return failed("listen");
  if (::getsockname(fd, address->any(), &address->size) != 0) return failed("getsockname");
  made.spare_ = Descriptor(open_null());
  made.port_ = ntohs(address->storage.ss_family == AF_INET6 ? address->v6()->sin6_port
                                                            : address->v4()->sin_port);
  made.address_ = address->text();
  return made;
}

Result<Listener> Listener::listen_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    return fail(Errc::usage, cat(quote(path), ": the path of a socket has 1 to ",
                                 sizeof(address.sun_path) - 1, " bytes"));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Listener made;
  const auto failed = [&](const char* call) {
    return fail(Errc::io, cat("cannot listen at ", path, ": ", call, ": ", std::strerror(errno)));
  };
  made.socket_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made.socket_.open()) return failed("socket");
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode))
      return fail(Errc::io, cat("cannot listen at ", path, ": there is a file that is no socket"));
    if (has_listener(address))
      return fail(Errc::io, cat("cannot listen at ", path, ": another server listens there"));
    ::unlink(path.c_str());
  }
  // The mode of the descriptor is that of the file, from its beginning. bind() follows no link.
  if (::fchmod(made.socket_.get(), 0600) != 0) return failed("fchmod");
  const auto* any = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(made.socket_.get(), any, sizeof(address)) != 0) return failed("bind");
  made.unix_ = true;
  made.address_ = path;
  if (::lstat(path.c_str(), &info) != 0) return failed("lstat");
  if (!S_ISSOCK(info.st_mode) || (info.st_mode & 0077) != 0)
    return fail(Errc::io, cat("cannot listen at ", path, ": others could open the socket"));
  if (::listen(made.socket_.get(), 1024) != 0) return failed("listen");
  made.spare_ = Descriptor(open_null());
  return made;
}

std::optional<Listener::Accepted> Listener::accept() {
  while (true) {
    SocketAddress peer;
    const int socket =
        ::accept4(socket_.get(), peer.any(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      const int on = 1;
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      return Accepted{socket, peer.text(), network_of(peer)};
    }
    if (errno == EMFILE || errno == ENFILE) {
      spare_.close();
      const Descriptor dropped(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      spare_ = Descriptor(open_null());
      if (!dropped.open()) return std::nullopt;
      continue;
    }
    // What is wrong with one connection does not end the others.
    if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) return std::nullopt;
  }
}

void Listener::close() {
  // The descriptor stays open, as the loop may still wait for it.
  ::shutdown(socket_.get(), SHUT_RD);
  if (std::exchange(unix_, false)) ::unlink(address_.c_str());
}

}  // namespace troupe::launch::serve::http
