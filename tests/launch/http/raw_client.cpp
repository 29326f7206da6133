#include "tests/launch/http/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::launch::serve::http {

using Clock = std::chrono::steady_clock;

RawClient::RawClient(int port, int receive_buffer) {
  socket_ = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (receive_buffer > 0)
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0,
        "connect");
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void RawClient::half_close() {
  ::shutdown(socket_.get(), SHUT_WR);
}

void RawClient::reset() {
  const linger now{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  socket_.close();
}

bool RawClient::fill(Clock::time_point deadline) {
  while (!ended_) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd one{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(0, left)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    std::array<char, 65536> buffer;
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      ended_ = true;
      return false;
    }
    input_.append(buffer.data(), static_cast<std::size_t>(count));
    return true;
  }
  return false;
}

bool RawClient::read_until(std::string_view text, std::chrono::milliseconds wait) {
  const auto deadline = Clock::now() + wait;
  while (true) {
    const std::size_t at = input_.find(text);
    if (at != std::string::npos) {
      input_.erase(0, at + text.size());
      return true;
    }
    if (!fill(deadline)) return false;
  }
}

std::optional<std::string> RawClient::rest(std::chrono::milliseconds wait) {
  const auto deadline = Clock::now() + wait;
  while (fill(deadline)) {
  }
  if (!ended_) return std::nullopt;
  return std::exchange(input_, {});
}

std::optional<RawResponse> RawClient::response(std::chrono::milliseconds wait, bool head) {
  const auto deadline = Clock::now() + wait;
  std::size_t end = input_.find("\r\n\r\n");
  for (; end == std::string::npos; end = input_.find("\r\n\r\n"))
    if (!fill(deadline)) return std::nullopt;
  RawResponse out;
  out.status = std::atoi(input_.c_str() + std::string_view("HTTP/1.1 ").size());
  std::size_t line = input_.find("\r\n");
  while (line < end) {
    const std::size_t begin = line + 2;
    line = input_.find("\r\n", begin);
    const std::size_t colon = input_.find(": ", begin);
    std::string name = input_.substr(begin, colon - begin);
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    });
    out.headers[name] = input_.substr(colon + 2, line - colon - 2);
  }
  input_.erase(0, end + 4);
  if (head || out.status == 204 || out.status == 100) return out;
  const auto take = [&](std::size_t size) {
    while (input_.size() < size)
      if (!fill(deadline)) return false;
    out.body += input_.substr(0, size);
    input_.erase(0, size);
    return true;
  };
  if (out.headers.contains("content-length"))
    return take(std::strtoul(out.headers["content-length"].c_str(), nullptr, 10))
               ? std::optional(out)
               : std::nullopt;
  while (true) {
    while (input_.find("\r\n") == std::string::npos)
      if (!fill(deadline)) return std::nullopt;
    const std::size_t size = std::strtoul(input_.c_str(), nullptr, 16);
    input_.erase(0, input_.find("\r\n") + 2);
    if (!take(size + 2)) return std::nullopt;
    out.body.resize(out.body.size() - 2);
    if (size == 0) return out;
  }
}

std::string post(std::string_view path, std::string_view body, std::string_view fields) {
  return cat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\n", fields,
             "Content-Length: ", body.size(), "\r\n\r\n", body);
}

std::string get(std::string_view path, std::string_view fields) {
  return cat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", fields, "\r\n");
}

}  // namespace troupe::launch::serve::http
