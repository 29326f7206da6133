#include "transports/zmq/socket.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>

#include "engine/base/errors/check.h"
#include "engine/base/files/environment_error.h"
#include "transports/wire/writer.h"

namespace troupe::transports {
namespace {

constexpr std::size_t min_shared_bytes = 4096;  // below this, a copy is cheaper than sharing

/// Keeps a part alive until ZeroMQ has sent it. The flag synchronizes this thread with ZeroMQ's
/// thread, which frees it.
struct Kept {
  wire::BodyPart part;
  std::atomic<bool> handed_over = false;
};

void release(void*, void* hint) {
  const std::unique_ptr<Kept> kept(static_cast<Kept*>(hint));
  check(kept->handed_over.load(std::memory_order_acquire), "a part is freed before it was sent");
}

zmq::message_t message_of(wire::BodyPart part) {
  if (part.size < min_shared_bytes) return zmq::message_t(part.data, part.size);
  auto* data = const_cast<std::byte*>(part.data);
  const std::size_t size = part.size;
  auto kept = std::make_unique<Kept>();
  kept->part = std::move(part);
  kept->handed_over.store(true, std::memory_order_release);  // ZeroMQ owns it from here on
  return zmq::message_t(data, size, release, kept.release());
}

zmq::message_t message_of(std::string text) {
  if (text.size() < min_shared_bytes) return zmq::message_t(text.data(), text.size());
  auto kept = std::make_shared<const std::string>(std::move(text));
  const auto* data = reinterpret_cast<const std::byte*>(kept->data());
  const std::size_t size = kept->size();
  return message_of(wire::BodyPart{std::move(kept), data, size});
}

std::string text_of(const zmq::message_t& message) {
  return {static_cast<const char*>(message.data()), message.size()};
}

}  // namespace

void set_limits(zmq::socket_t& socket, const LinkOptions& options) {
  socket.set(zmq::sockopt::sndhwm, 0);
  socket.set(zmq::sockopt::rcvhwm, 0);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(options.max_bytes));
  socket.set(zmq::sockopt::handshake_ivl, 1000);
  socket.set(zmq::sockopt::reconnect_ivl, 50);
  socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
  socket.set(zmq::sockopt::linger, static_cast<int>(options.linger.count()));
}

void set_server_keys(zmq::socket_t& socket, const KeyPair& keys) {
  socket.set(zmq::sockopt::curve_server, 1);
  socket.set(zmq::sockopt::curve_secretkey, keys.secret_key);
  socket.set(zmq::sockopt::zap_domain, "troupe");
}

void set_client_keys(zmq::socket_t& socket, const KeyPair& keys,
                     const std::string& server_public_key) {
  socket.set(zmq::sockopt::curve_serverkey, server_public_key);
  socket.set(zmq::sockopt::curve_publickey, keys.public_key);
  socket.set(zmq::sockopt::curve_secretkey, keys.secret_key);
}

bool send_message(zmq::socket_t& socket, const std::string* route, wire::WireBody message) {
  try {
    const auto send = [&](zmq::message_t part, bool more) {
      const auto flags =
          zmq::send_flags::dontwait | (more ? zmq::send_flags::sndmore : zmq::send_flags::none);
      return socket.send(part, flags).has_value();
    };
    std::size_t left = message.parts.size();
    bool sent = !route || send(zmq::message_t(route->data(), route->size()), true);
    sent = sent && send(message_of(std::move(message.header)), left > 0);
    for (std::size_t i = 0; sent && i < message.parts.size(); ++i)
      sent = send(message_of(std::move(message.parts[i])), --left > 0);
    return sent;
  } catch (const zmq::error_t& error) {
    if (error.num() == EHOSTUNREACH) return false;
    throw;
  }
}

std::optional<Incoming> receive_message(zmq::socket_t& socket, bool routed,
                                        const LinkOptions& options) {
  Incoming in;
  zmq::message_t message;
  if (!socket.recv(message, zmq::recv_flags::dontwait)) return std::nullopt;
  bool more = true;
  if (routed) {
    in.route = text_of(message);
    more = message.more() && socket.recv(message);
  }
  if (!more) return in;
  in.fd = zmq_msg_get(message.handle(), ZMQ_SRCFD);
  if (const char* node = zmq_msg_gets(message.handle(), "User-Id")) in.node = node;
  in.bytes = message.size();
  in.oversized = message.size() > options.max_header_bytes;
  if (!in.oversized) in.message.header = text_of(message);
  for (more = message.more(); more;) {
    auto kept = std::make_shared<zmq::message_t>();
    static_cast<void>(socket.recv(*kept));
    more = kept->more();
    in.bytes += kept->size();
    in.oversized |= in.bytes > options.max_bytes || in.message.parts.size() > wire::max_parts;
    if (!in.oversized) {
      const auto* data = static_cast<const std::byte*>(kept->data());
      const std::size_t size = kept->size();
      in.message.parts.push_back({std::move(kept), data, size});
    }
  }
  if (in.oversized) in.message = {};
  return in;
}

std::optional<SocketEvent> receive_event(zmq::socket_t& monitor) {
  zmq::message_t head, endpoint;
  if (!monitor.recv(head, zmq::recv_flags::dontwait)) return std::nullopt;
  if (head.more()) static_cast<void>(monitor.recv(endpoint));
  std::uint16_t event = 0;
  std::int32_t value = 0;
  check(head.size() == sizeof event + sizeof value, "a monitor event has 6 bytes");
  std::memcpy(&event, head.data(), sizeof event);
  std::memcpy(&value, head.data<char>() + sizeof event, sizeof value);
  return SocketEvent{event, value, text_of(endpoint)};
}

void watch_socket(zmq::socket_t& socket, zmq::socket_t& monitor) {
  constexpr const char* events = "inproc://monitor";
  if (zmq_socket_monitor(socket.handle(), events, ZMQ_EVENT_ALL) != 0) throw zmq::error_t();
  monitor.connect(events);
}

Error socket_error(const zmq::error_t& error) {
  return {Errc::io, cat("cannot create a socket: ",
                        error.num() == EMFILE ? reason_of(EMFILE) : error.what())};
}

}  // namespace troupe::transports
