// Small messages that wait together leave as one, and are taken apart where they come in.
#include <utility>

#include "transports/zmq/peer_transport.h"

namespace troupe::transports {

bool Station::send_all(const std::string& peer, std::vector<wire::WireBody> ready) {
  std::vector<wire::WireBody> small;
  std::size_t bytes = 0;
  const auto send_small = [&] {
    const bool sent = small.empty() ||
                      transmit(peer, small.size() == 1 ? std::move(small[0]) : wire::bundle(small));
    small.clear();
    bytes = 0;
    return sent;
  };
  for (auto& message : ready) {
    if (wire::may_bundle(message)) {
      bytes += message.header.size() + 4;
      small.push_back(std::move(message));
      if (bytes >= wire::bundle_bytes && !send_small()) return false;
    } else if (!send_small() || !transmit(peer, std::move(message))) {
      return false;
    }
  }
  return send_small();
}

void Station::split(const std::string& peer, Incoming in,
                    const std::function<void(Incoming)>& each) {
  if (!wire::is_bundle(in.message)) return each(std::move(in));
  auto messages = wire::unbundle(in.message, peer);
  if (!messages) return refusals.add(Refusal::malformed, peer, messages.error().what);
  for (auto& message : *messages) {
    const std::size_t bytes = message.header.size();
    each({in.route, in.node, in.fd, bytes, false, std::move(message)});
  }
}

}  // namespace troupe::transports
