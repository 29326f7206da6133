#include "tests/simulator/resending_transport.h"

#include <algorithm>

namespace troupe::simulator {
namespace {

using transports::Frame;
using transports::Kind;

constexpr const char* confirmation = "confirmation";
constexpr std::chrono::milliseconds first_interval{100}, longest_interval{5000};

}  // namespace

std::uint64_t ResendingTransport::attach(const std::string& node, transports::Receiver receive) {
  return network_.attach(node, [this, receive = std::move(receive)](Frame frame) {
    const bool reply = frame.kind != Kind::request;
    if (frame.type == confirmation) {  // of a frame in the other direction
      unconfirmed_.erase({frame.to.node, frame.from.node, frame.id, reply});
      return;
    }
    static_cast<void>(
        network_.send(Frame{frame.from, frame.to, frame.id, frame.kind, confirmation, {}}));
    receive(std::move(frame));
  });
}

Result<> ResendingTransport::send(Frame frame) {
  const Key key{frame.from.node, frame.to.node, frame.id, frame.kind != Kind::request};
  unconfirmed_[key] = std::move(frame);
  transmit(key, first_interval);
  return {};
}

void ResendingTransport::transmit(const Key& key, std::chrono::nanoseconds interval) {
  const auto frame = unconfirmed_.find(key);
  if (frame == unconfirmed_.end()) return;
  static_cast<void>(network_.send(frame->second));
  const auto next = std::min<std::chrono::nanoseconds>(2 * interval, longest_interval);
  later_(interval, [this, key, next] { transmit(key, next); });
}

}  // namespace troupe::simulator
