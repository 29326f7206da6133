#include "launch/config/serve_config.h"

#include <charconv>

#include "engine/base/text.h"

namespace troupe::launch {

namespace {

constexpr int max_port = 65535;

}  // namespace

Result<ListenAddress> listen_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  ListenAddress out;
  if (colon != std::string::npos) out.host = text.substr(0, colon);
  if (out.host.starts_with('[') && out.host.ends_with(']'))
    out.host = out.host.substr(1, out.host.size() - 2);
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  const char* end = port.data() + port.size();
  const auto [stop, error] = std::from_chars(port.data(), end, out.port);
  if (out.host.empty() || error != std::errc() || stop != end || out.port < 0 ||
      out.port > max_port)
    return fail(Errc::usage, cat("serve.listen = ", quote(text),
                                 ": expected HOST:PORT with a numeric address, or PORT; ports are "
                                 "0 to 65535"));
  return out;
}

Result<std::string> listener_of(const std::string& text, int number) {
  auto address = listen_address(text);
  RETURN_IF_ERROR(address);
  const bool brackets = address->host.find(':') != std::string::npos;
  const int port = address->port == 0 ? 0 : address->port + number;
  if (port > max_port)
    return fail(Errc::usage, cat("serve.listen = ", quote(text), ": rollout ", number,
                                 " would listen at port ", port, ", beyond ", max_port));
  return cat(brackets ? "[" : "", address->host, brackets ? "]:" : ":", port);
}

}  // namespace troupe::launch
