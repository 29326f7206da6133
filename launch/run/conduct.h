// conduct: an algorithm from its configuration: data, plan and journal, over actors that may live
// anywhere.
#pragma once

#include <vector>

#include "actors/runtime/node.h"
#include "algorithms/cluster.h"
#include "launch/journal/run_journal.h"
#include "launch/run/session.h"
#include "launch/run/text_model.h"

namespace troupe::launch {

/// The actors of a run. Each is asked for once, and only when the algorithm needs it.
class Cast {
 public:
  virtual ~Cast() = default;
  /// The node whose coroutines ask.
  virtual actors::Node& node() = 0;
  virtual algorithms::PolicyRef policy() = 0;
  virtual algorithms::ReferenceRef reference() = 0;
  virtual std::vector<algorithms::RolloutRef> rollouts() = 0;
  virtual algorithms::RewardRef verifier() = 0;
  virtual algorithms::RewardRef reward() = 0;
  virtual algorithms::CriticRef critic() = 0;
  /// algorithms::Cluster::pieces: more than 1 where the rollouts and the reference can work at the
  /// same time.
  virtual std::size_t pieces() const = 0;
};

/// Reads the data, runs the algorithm to its end or until `stop`, and returns the process's exit
/// code. Throws Failure.
int conduct(const Session& session, const TextModel& text, Cast& cast, RunJournal& journal,
            const actors::Stop& stop);

}  // namespace troupe::launch
