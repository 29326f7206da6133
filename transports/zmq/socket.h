// Messages over ZeroMQ sockets without copying their parts, in both directions.
#pragma once

#include <optional>
#include <string>
#include <zmq.hpp>

#include "transports/zmq/keys.h"
#include "transports/zmq/link_options.h"

namespace troupe::transports {

/// One received message. `oversized`: it exceeded the limits and was discarded.
struct Incoming {
  std::string route;  ///< routing id of the connection; ROUTER only
  std::string node;   ///< node of the connection's key; ROUTER only
  int fd = -1;        ///< descriptor of the connection
  std::size_t bytes = 0;
  bool oversized = false;
  wire::WireBody message;
};

/// Sets the options of every socket: limits, no high-water marks (credit bounds the messages in
/// flight), short handshake timeouts.
void set_limits(zmq::socket_t& socket, const LinkOptions& options);
/// Makes the socket a CURVE server that authenticates its clients by ZAP.
void set_server_keys(zmq::socket_t& socket, const KeyPair& keys);
void set_client_keys(zmq::socket_t& socket, const KeyPair& keys,
                     const std::string& server_public_key);

/// False when the connection no longer exists. Raw parts are not copied.
bool send_message(zmq::socket_t& socket, const std::string* route, wire::WireBody message);
/// Returns nullopt when no message is available.
std::optional<Incoming> receive_message(zmq::socket_t& socket, bool routed,
                                        const LinkOptions& options);

/// Event of a socket's monitor: ZMQ_EVENT_... with its value (a file descriptor, an error) and
/// endpoint.
struct SocketEvent {
  int event = 0, value = 0;
  std::string endpoint;
};
std::optional<SocketEvent> receive_event(zmq::socket_t& monitor);
/// Connects `monitor`, a PAIR socket, to the events of `socket`. Throws zmq::error_t.
void watch_socket(zmq::socket_t& socket, zmq::socket_t& monitor);
/// Errc::io: no socket could be created. Names the limit of open files if that is the cause.
Error socket_error(const zmq::error_t& error);

}  // namespace troupe::transports
