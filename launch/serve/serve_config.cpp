#include "launch/serve/serve_config.h"

#include <sys/un.h>

#include <string_view>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"

namespace troupe::launch::serve {

namespace {

constexpr int max_port = 65535;
constexpr std::string_view unix_prefix = "unix:";
constexpr std::size_t max_socket_path = sizeof(sockaddr_un{}.sun_path) - 1;

Result<ListenAddress> unix_address(const std::string& text) {
  ListenAddress out{.unix_socket = text.substr(unix_prefix.size())};
  const std::size_t bytes = out.unix_socket.size();
  if (bytes == 0 || bytes > max_socket_path || out.unix_socket.ends_with('/'))
    return fail(Errc::usage,
                cat("serve.listen = ", quote(text), ": expected the path of a socket, ", "1 to ",
                    max_socket_path, " bytes, found ", bytes, " bytes"));
  return out;
}

}  // namespace

Result<ListenAddress> listen_address(const std::string& text) {
  if (text.starts_with(unix_prefix)) return unix_address(text);
  const std::size_t colon = text.rfind(':');
  ListenAddress out;
  if (colon != std::string::npos) out.host = text.substr(0, colon);
  if (out.host.starts_with('[') && out.host.ends_with(']'))
    out.host = out.host.substr(1, out.host.size() - 2);
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  out.port = parse_number<int>(port).value_or(-1);
  if (out.host.empty() || out.port < 0 || out.port > max_port)
    return fail(Errc::usage, cat("serve.listen = ", quote(text),
                                 ": expected HOST:PORT with a numeric address, PORT, or unix:PATH; "
                                 "ports are 0 to 65535"));
  return out;
}

Result<std::string> listener_of(const std::string& text, int number) {
  auto address = listen_address(text);
  RETURN_IF_ERROR(address);
  if (!address->unix_socket.empty()) {
    const std::string named = number == 0 ? text : cat(text, ".", number);
    RETURN_IF_ERROR(listen_address(named));
    return named;
  }
  const bool brackets = address->host.find(':') != std::string::npos;
  const int port = address->port == 0 ? 0 : address->port + number;
  if (port > max_port)
    return fail(Errc::usage, cat("serve.listen = ", quote(text), ": rollout ", number,
                                 " would listen at port ", port, ", beyond ", max_port));
  return cat(brackets ? "[" : "", address->host, brackets ? "]:" : ":", port);
}

}  // namespace troupe::launch::serve
