// ZmqTransport: base class of Hub and Spoke. It forwards to a PeerTransport, whose thread alone
// uses the sockets, and keeps ZeroMQ out of their headers.
#pragma once

#include <memory>
#include <string>

#include "transports/transport.h"
#include "transports/zmq/refusals.h"

namespace troupe::transports {

class PeerTransport;

class ZmqTransport : public Transport {
 public:
  /// Calls close().
  ~ZmqTransport() override;
  ZmqTransport(const ZmqTransport&) = delete;

  /// Starts to communicate. Call it after attaching the node and spawning its actors: peers may ask
  /// immediately.
  void open();
  /// Sends what is queued and a bye, then closes the sockets, within `linger`. Idempotent.
  void close();

  std::uint64_t attach(const std::string& node, Receiver receive) override;
  void detach(const std::string& node) override;
  /// Errc::full beyond the peer's window, Errc::closed for a lost peer.
  Result<> send(Frame frame) override;

  const Refusals& refusals() const;

 protected:
  explicit ZmqTransport(std::unique_ptr<PeerTransport> peers);

 private:
  std::unique_ptr<PeerTransport> peers_;
};

}  // namespace troupe::transports
