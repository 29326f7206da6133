// What hub and spoke have in common: limits, times, and what they tell of their peers.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "transports/zmq/link.h"

namespace troupe::transports {

/// A peer has shown its key and said hello; or it is gone, for good, and `why` says how it is
/// known.
struct PeerEvent {
  enum class What { joined, lost };
  std::string node;
  What what = What::joined;
  std::string why;
};

struct LinkOptions {
  Window window{1024,
                std::uint64_t{256} << 20};  ///< granted to each peer; one larger message goes alone
  std::size_t most_bytes = std::size_t{16} << 30;   ///< of one message, all parts together
  std::size_t most_header = std::size_t{64} << 20;  ///< of its msgpack header
  std::chrono::milliseconds silence =
      std::chrono::seconds(5);  ///< a peer that was not heard for so long is lost
  std::chrono::milliseconds join =
      std::chrono::seconds(30);  ///< a spoke gives up when its hub has not answered by then
  std::chrono::milliseconds linger =
      std::chrono::seconds(2);  ///< closing waits so long for what is queued
  std::function<void(const PeerEvent&)>
      on_peer;  ///< on the transport's own thread; it must not wait for the transport
};

}  // namespace troupe::transports
