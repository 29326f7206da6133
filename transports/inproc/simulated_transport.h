// SimulatedTransport: a transport with seeded delay, loss, duplication, reordering and node
// failures over virtual time. The same seed and the same sends give the same faults.
// Single-threaded.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "transports/transport.h"

namespace troupe::transports {

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
  void set_faults(Faults faults) { faults_ = faults; }
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

}  // namespace troupe::transports
