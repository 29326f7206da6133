#include "transports/inproc/simulated.h"

#include "engine/base/check.h"
#include "engine/base/random.h"

namespace troupe::transports {

Simulated::Simulated(std::uint64_t seed, Faults faults, Later later)
    : seed_(seed), faults_(faults), later_(std::move(later)) {
}

double Simulated::draw() {
  return uniform(seed_, 0, draws_++);
}

std::uint64_t Simulated::attach(const std::string& node, Receiver receive) {
  const bool added = state_->receivers.emplace(node, std::move(receive)).second;
  check(added, "two nodes of one transport have the same name");
  state_->dead.erase(node);
  return ++incarnations_;
}

void Simulated::detach(const std::string& node) {
  state_->receivers.erase(node);
}

void Simulated::kill(const std::string& node) {
  state_->dead.insert(node);
}

Result<> Simulated::send(Frame frame) {
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

void Simulated::deliver_later(Frame frame) {
  const double share = draw();
  const auto spread = static_cast<double>((faults_.most_delay - faults_.least_delay).count());
  const std::chrono::nanoseconds delay =
      faults_.least_delay + std::chrono::nanoseconds(static_cast<std::int64_t>(share * spread));
  auto shared = std::make_shared<Frame>(std::move(frame));
  later_(delay, [state = state_, shared] {
    const auto receiver = state->receivers.find(shared->to.node);
    const bool heard = receiver != state->receivers.end() &&
                       !state->dead.contains(shared->to.node) &&
                       !state->dead.contains(shared->from.node);
    ++(heard ? state->counts.delivered : state->counts.lost);
    if (heard) receiver->second(std::move(*shared));
  });
}

}  // namespace troupe::transports
