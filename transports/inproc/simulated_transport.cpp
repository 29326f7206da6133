#include "transports/inproc/simulated_transport.h"

#include "engine/base/check.h"
#include "engine/base/random.h"

namespace troupe::transports {

SimulatedTransport::SimulatedTransport(std::uint64_t seed, Faults faults, Later later)
    : seed_(seed), faults_(faults), later_(std::move(later)) {
}

double SimulatedTransport::draw() {
  return uniform(seed_, 0, draws_++);
}

std::uint64_t SimulatedTransport::attach(const std::string& node, Receiver receive) {
  const bool added = state_->receivers.emplace(node, std::move(receive)).second;
  check(added, "two nodes of one transport have the same name");
  state_->dead.erase(node);
  return ++incarnations_;
}

void SimulatedTransport::detach(const std::string& node) {
  state_->receivers.erase(node);
}

void SimulatedTransport::kill(const std::string& node) {
  state_->dead.insert(node);
}

Result<> SimulatedTransport::send(Frame frame) {
  SimulatedCounts& counts = state_->counts;
  ++counts.sent;
  const bool lost = draw() < faults_.loss, repeated = draw() < faults_.repeat;
  if (lost || (passes_ && !passes_(frame)) || state_->dead.contains(frame.from.node)) {
    ++counts.lost;
    return {};
  }
  if (repeated && frame.body.copyable()) {
    ++counts.repeated;
    deliver_later(frame);
  }
  deliver_later(std::move(frame));
  return {};
}

void SimulatedTransport::deliver_later(Frame frame) {
  const double share = draw();
  const auto spread = static_cast<double>((faults_.max_delay - faults_.min_delay).count());
  const std::chrono::nanoseconds delay =
      faults_.min_delay + std::chrono::nanoseconds(static_cast<std::int64_t>(share * spread));
  auto shared = std::make_shared<Frame>(std::move(frame));
  later_(delay, [state = state_, shared] {
    const auto receiver = state->receivers.find(shared->to.node);
    const bool received = receiver != state->receivers.end() &&
                          !state->dead.contains(shared->to.node) &&
                          !state->dead.contains(shared->from.node);
    ++(received ? state->counts.delivered : state->counts.lost);
    if (received) receiver->second(std::move(*shared));
  });
}

}  // namespace troupe::transports
