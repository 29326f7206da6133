// LinkOptions: limits, timeouts and callbacks of hub and spoke.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <set>
#include <string>

#include "transports/zmq/link.h"

namespace troupe::transports {

/// A peer joined: it authenticated and sent its hello. Or it was lost, and `why` states the reason;
/// only another incarnation of it may join then (Hub::replace). Or, at a spoke, the hub refused
/// this process, because it had taken it for lost.
struct PeerEvent {
  enum class What { joined, lost, fenced };
  std::string node;
  What what = What::joined;
  std::string why;
  std::uint64_t incarnation = 1;  ///< of the peer; at a hub
};

struct LinkOptions {
  /// Window granted to each peer. A single message larger than the window is sent alone.
  Window window{1024, std::uint64_t{256} << 20};
  std::size_t max_bytes = std::size_t{16} << 30;         ///< of a message with all its parts
  std::size_t max_header_bytes = std::size_t{64} << 20;  ///< of a message's msgpack header
  /// A peer without any message or heartbeat for this time is lost.
  std::chrono::milliseconds silence = std::chrono::seconds(5);
  /// Time after which a spoke gives up on a hub that does not answer.
  std::chrono::milliseconds join = std::chrono::seconds(30);
  /// Time that closing waits for queued messages.
  std::chrono::milliseconds linger = std::chrono::seconds(2);
  /// Peers whose requests do not depend on what they have been sent before: those that a lost one
  /// has not answered are sent to its successor, and their senders notice nothing.
  std::set<std::string> stateless;
  /// Called on the transport's thread, before the asks of a lost peer end; must not wait for the
  /// transport.
  std::function<void(const PeerEvent&)> on_peer;
};

}  // namespace troupe::transports
