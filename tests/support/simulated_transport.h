// SimulatedTransport: a transport with seeded delay, loss, duplication, reordering and node
// failures over virtual time. The same seed and the same sends give the same faults.
// Single-threaded.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"
#include "transports/transport.h"

namespace troupe::test {

using transports::Frame, transports::Receiver, transports::Transport;

struct Faults {
  /// Delays are uniform between these; frames overtake each other when they differ.
  std::chrono::nanoseconds min_delay{0}, max_delay{0};
  double loss = 0;    ///< probability that a frame never arrives
  double repeat = 0;  ///< probability that a frame arrives twice, at different times
};

struct SimulatedCounts {
  std::uint64_t sent = 0, lost = 0, repeated = 0, delivered = 0;
};

class SimulatedTransport final : public Transport {
 public:
  /// Runs a job after a delay of virtual time.
  using Later = std::function<void(std::chrono::nanoseconds, std::function<void()>)>;

  SimulatedTransport(std::uint64_t seed, Faults faults, Later later);
  std::uint64_t attach(const std::string& node, Receiver receive) override;
  void detach(const std::string& node) override;
  /// Always succeeds: faults are silent.
  Result<> send(Frame frame) override;

  /// Disconnects a node, as SIGKILL would: it neither sends nor receives, and frames in flight are
  /// lost.
  void kill(const std::string& node);
  /// Drops every frame for which `passes` is false, for tests that lose a particular frame.
  void set_filter(std::function<bool(const Frame&)> passes) { passes_ = std::move(passes); }
  SimulatedCounts counts() const { return state_->counts; }

 private:
  struct State {  // outlives the transport in pending jobs
    std::map<std::string, Receiver> receivers;
    std::set<std::string> dead;
    SimulatedCounts counts;
  };
  double draw();
  void deliver_later(Frame frame);

  std::uint64_t seed_, draws_ = 0;
  Faults faults_;
  Later later_;
  std::function<bool(const Frame&)> passes_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::uint64_t incarnations_ = 0;
};

inline SimulatedTransport::SimulatedTransport(std::uint64_t seed, Faults faults, Later later)
    : seed_(seed), faults_(faults), later_(std::move(later)) {
}

inline double SimulatedTransport::draw() {
  return uniform(seed_, 0, draws_++);
}

inline std::uint64_t SimulatedTransport::attach(const std::string& node, Receiver receive) {
  const bool added = state_->receivers.emplace(node, std::move(receive)).second;
  check(added, "two nodes of one transport have the same name");
  state_->dead.erase(node);
  return ++incarnations_;
}

inline void SimulatedTransport::detach(const std::string& node) {
  state_->receivers.erase(node);
}

inline void SimulatedTransport::kill(const std::string& node) {
  state_->dead.insert(node);
}

inline Result<> SimulatedTransport::send(Frame frame) {
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

inline void SimulatedTransport::deliver_later(Frame frame) {
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

}  // namespace troupe::test
