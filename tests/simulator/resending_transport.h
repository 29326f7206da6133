// ResendingTransport: delivers frames over a simulated network that loses them. A frame is sent
// again until its arrival is confirmed; confirmations are lost too, so frames also arrive twice.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <tuple>

#include "tests/support/simulated_transport.h"

namespace troupe::simulator {

class ResendingTransport final : public transports::Transport {
 public:
  using Later = test::SimulatedTransport::Later;
  /// Both outlive it, and it outlives the jobs of `later`.
  ResendingTransport(test::SimulatedTransport& network, Later later)
      : network_(network), later_(std::move(later)) {}

  std::uint64_t attach(const std::string& node, transports::Receiver receive) override;
  void detach(const std::string& node) override { network_.detach(node); }
  Result<> send(transports::Frame frame) override;

 private:
  /// Sender, receiver and id of the ask; true for its reply.
  using Key = std::tuple<std::string, std::string, std::uint64_t, bool>;
  void transmit(const Key& key, std::chrono::nanoseconds interval);

  test::SimulatedTransport& network_;
  Later later_;
  std::map<Key, transports::Frame> unconfirmed_;
};

}  // namespace troupe::simulator
