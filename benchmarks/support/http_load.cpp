#include "benchmarks/support/http_load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>

#include "engine/base/files/descriptor.h"
#include "engine/base/text/text.h"

namespace troupe::benchmarks {

namespace {

using Clock = std::chrono::steady_clock;

struct Client {
  Descriptor socket;
  std::string input;
  Clock::time_point due;
  bool busy = false;
};

/// A response at the beginning of the input of a client.
struct Found {
  bool complete = false, malformed = false, retry_after = false;
  int status = 0;
  std::size_t bytes = 0, events = 0;
};

std::size_t count_of(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

Found find_response(std::string_view input) {
  Found found;
  const std::size_t end = input.find("\r\n\r\n");
  if (end == std::string_view::npos) return found;
  const std::string_view head = input.substr(0, end + 2), body = input.substr(end + 4);
  if (!head.starts_with("HTTP/1.1 ")) return {.malformed = true};
  found.status = std::atoi(head.substr(9, 3).data());
  found.retry_after = head.find("\r\nRetry-After: ") != std::string_view::npos;
  constexpr std::string_view length_name = "\r\nContent-Length: ", last_chunk = "\r\n0\r\n\r\n";
  if (const auto at = head.find(length_name); at != std::string_view::npos) {
    const auto length = static_cast<std::size_t>(std::atoll(head.data() + at + length_name.size()));
    found.complete = body.size() >= length;
    found.bytes = end + 4 + length;
    return found;
  }
  if (head.find("\r\nTransfer-Encoding: chunked") == std::string_view::npos)
    return {.malformed = true};
  const std::size_t last = body.find(last_chunk);
  if (last == std::string_view::npos) return found;
  found.complete = true;
  found.bytes = end + 4 + last + last_chunk.size();
  found.events = count_of(body.substr(0, last), "data: ");
  return found;
}

class Generator {
 public:
  explicit Generator(const HttpLoad& load) : load_(load), clients_(load.connections) {}

  Result<HttpResult> run() {
    poll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
    for (Client& client : clients_) RETURN_IF_ERROR(connect(client));
    begin_ = Clock::now();
    const auto end = begin_ + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(load_.seconds));
    if (load_.rate == 0)
      for (Client& client : clients_) send(client, begin_);
    for (Client& client : clients_) free_.push_back(&client);
    while (busy_ > 0 || (Clock::now() < end && more())) {
      if (load_.rate > 0) send_due(std::min(Clock::now(), end));
      stopping_ = Clock::now() >= end;
      // A server that no longer answers must not hold the benchmark.
      if (Clock::now() > end + std::chrono::seconds(30)) break;
      wait();
    }
    result_.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    result_.failed += busy_;
    return std::move(result_);
  }

 private:
  Result<> connect(Client& client) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(load_.port));
    if (::inet_pton(AF_INET, load_.host.c_str(), &address.sin_addr) != 1)
      return fail(Errc::usage, cat(load_.host, " is not a numeric address"));
    client.socket = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int fd = client.socket.get(), on = 1;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
      return fail(Errc::io, cat("cannot connect to ", load_.host, ":", load_.port, ": ",
                                std::strerror(errno)));
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &client;
    ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event);
    return {};
  }

  bool more() const { return load_.max_requests == 0 || sent_ < load_.max_requests; }

  void send(Client& client, Clock::time_point due) {
    client.due = due;
    client.busy = true;
    ++busy_;
    ++sent_;
    const ssize_t count =
        ::send(client.socket.get(), load_.request.data(), load_.request.size(), MSG_NOSIGNAL);
    if (count != std::ssize(load_.request)) lose(client);
  }

  /// Sends the requests of an open loop that are due, as long as connections are free.
  void send_due(Clock::time_point now) {
    while (more() && !free_.empty()) {
      const std::chrono::duration<double> offset(static_cast<double>(sent_) / load_.rate);
      const auto due = begin_ + std::chrono::duration_cast<Clock::duration>(offset);
      if (due > now) return;
      Client* client = free_.front();
      free_.pop_front();
      send(*client, due);
    }
  }

  void wait() {
    std::array<epoll_event, 256> events{};
    const int timeout = load_.rate > 0 ? 1 : 100;
    const int count =
        ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    for (int i = 0; i < count; ++i) receive(*static_cast<Client*>(events[i].data.ptr));
  }

  void lose(Client& client) {
    if (std::exchange(client.busy, false)) --busy_;
    ++result_.failed;
    client.socket.close();
  }

  void receive(Client& client) {
    std::array<char, 65536> buffer;
    const ssize_t count = ::recv(client.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return lose(client);
    client.input.append(buffer.data(), static_cast<std::size_t>(count));
    const Found found = find_response(client.input);
    if (found.malformed) return lose(client);
    if (found.complete) finish(client, found);
  }

  void finish(Client& client, const Found& found) {
    const auto now = Clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - client.due).count();
    (found.status == 200   ? result_.ok
     : found.status == 429 ? result_.refused
                           : result_.other)
        .push_back(ms);
    if (found.status == 429 && found.retry_after) ++result_.with_retry_after;
    result_.events += static_cast<std::int64_t>(found.events);
    client.input.erase(0, found.bytes);
    client.busy = false;
    --busy_;
    if (load_.rate > 0)
      free_.push_back(&client);
    else if (!stopping_ && more())
      send(client, now);
  }

  const HttpLoad& load_;
  std::vector<Client> clients_;
  Descriptor poll_;
  std::deque<Client*> free_;
  Clock::time_point begin_;
  std::int64_t sent_ = 0, busy_ = 0;
  bool stopping_ = false;
  HttpResult result_;
};

}  // namespace

Result<HttpResult> run_load(const HttpLoad& load) {
  return Generator(load).run();
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto rank =
      static_cast<std::ptrdiff_t>(std::ceil(share * static_cast<double>(values.size())) - 1);
  const auto at = values.begin() + std::clamp<std::ptrdiff_t>(rank, 0, std::ssize(values) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace troupe::benchmarks
