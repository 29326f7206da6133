// Loopback: the transport between the nodes of one process. Frames arrive immediately, exactly once
// and in order.
#pragma once

#include <map>
#include <shared_mutex>

#include "transports/transport.h"

namespace troupe::transports {

class Loopback final : public Transport {
 public:
  std::uint64_t attach(const std::string& node, Receiver receive) override;
  void detach(const std::string& node) override;
  /// Calls the receiver on the caller's thread; the receiver only queues the frame.
  Result<> send(Frame frame) override;

 private:
  std::shared_mutex mutex_;  // senders hold it shared; detach() waits for them
  std::map<std::string, Receiver> receivers_;
  std::uint64_t incarnations_ = 0;
};

}  // namespace troupe::transports
