// Simulated: the hostile transport. Seeded delay, loss, repetition and reordering, and death of
// nodes, over virtual time. The same seed and the same sends give the same faults. For one thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "transports/transport.h"

namespace troupe::transports {

struct Faults {
  std::chrono::nanoseconds least_delay{0},
      most_delay{0};  ///< uniform; frames overtake each other when they differ
  double loss = 0;    ///< probability that a frame never arrives
  double repeat = 0;  ///< probability that a frame arrives twice, at two times
};

struct SimulatedCounts {
  std::uint64_t sent = 0, lost = 0, repeated = 0, delivered = 0;
};

class Simulated final : public Transport {
 public:
  /// Runs a job after a delay of virtual time.
  using Later = std::function<void(std::chrono::nanoseconds, std::function<void()>)>;

  Simulated(std::uint64_t seed, Faults faults, Later later);
  std::uint64_t attach(const std::string& node, Receiver receive) override;
  void detach(const std::string& node) override;
  /// Errors of the network are silent: success always.
  Result<> send(Frame frame) override;

  /// From now on the node neither hears nor is heard, as after SIGKILL; what is on its way is lost
  /// too.
  void kill(const std::string& node);
  void set_faults(Faults faults) { faults_ = faults; }
  /// What becomes of each frame before chance has its say: false loses it. For tests that lose one
  /// certain frame.
  void set_filter(std::function<bool(const Frame&)> passes) { passes_ = std::move(passes); }
  SimulatedCounts counts() const { return state_->counts; }

 private:
  struct State {  // outlives the transport in jobs that are still to run
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
