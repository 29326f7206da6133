// Messages over ZeroMQ sockets: parts that are kept alive by whoever has them, in both directions.
#pragma once

#include <optional>
#include <string>
#include <zmq.hpp>

#include "transports/zmq/keys.h"
#include "transports/zmq/link_options.h"

namespace troupe::transports {

/// One message as it came in. `oversized`: its bytes or parts were more than a message may have,
/// and were not kept.
struct Incoming {
  std::string route;  ///< of the connection; ROUTER only
  std::string node;   ///< whose key the connection has; ROUTER only
  int fd = -1;        ///< of the connection
  std::size_t bytes = 0;
  bool oversized = false;
  wire::WireBody message;
};

/// What every socket of ours has: limits, no high-water mark (credit bounds what is under way),
/// short handshakes.
void set_limits(zmq::socket_t& socket, const LinkOptions& options);
/// `server`: decides by ZAP whom to let in.
void set_server_keys(zmq::socket_t& socket, const KeyPair& keys);
void set_client_keys(zmq::socket_t& socket, const KeyPair& keys,
                     const std::string& server_public_key);

/// False when there is no such connection (any more). Raw parts are not copied.
bool send_message(zmq::socket_t& socket, const std::string* route, wire::WireBody message);
/// Nothing when no message has come in.
std::optional<Incoming> receive_message(zmq::socket_t& socket, bool routed,
                                        const LinkOptions& options);

/// What the monitor of a socket tells: ZMQ_EVENT_... with its value (a file descriptor, an error)
/// and endpoint.
struct SocketEvent {
  int event = 0, value = 0;
  std::string endpoint;
};
std::optional<SocketEvent> receive_event(zmq::socket_t& monitor);

}  // namespace troupe::transports
