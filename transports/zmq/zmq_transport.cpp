#include "transports/zmq/zmq_transport.h"

#include <utility>

#include "transports/zmq/peer_transport.h"

namespace troupe::transports {

ZmqTransport::ZmqTransport(std::unique_ptr<PeerTransport> peers) : peers_(std::move(peers)) {
}
ZmqTransport::~ZmqTransport() {
  close();
}

void ZmqTransport::open() {
  peers_->open();
}
void ZmqTransport::close() {
  peers_->close();
}
std::uint64_t ZmqTransport::attach(const std::string& node, Receiver receive) {
  return peers_->attach(node, std::move(receive));
}
void ZmqTransport::detach(const std::string&) {
  peers_->detach();
}
Result<> ZmqTransport::send(Frame frame) {
  return peers_->send(std::move(frame));
}
const Refusals& ZmqTransport::refusals() const {
  return peers_->refusals;
}

}  // namespace troupe::transports
