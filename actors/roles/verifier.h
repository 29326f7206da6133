// Verifier: scores completions by rules (rules/rules.h). Messages do not wait for each other where
// a rule waits for processes.
#pragma once

#include "actors/protocol/reward.h"
#include "actors/roles/rules/rules.h"
#include "actors/runtime/message.h"

namespace troupe::actors::roles {

class Verifier {
 public:
  using Handled = Messages<protocol::ComputeRewards>;
  /// `rules` have been started.
  explicit Verifier(rules::Rules rules) : rules_(std::move(rules)) {}
  /// Messages handled at a time (ConcurrentActor).
  std::size_t concurrency() const { return rules_.concurrency(); }

  std::vector<protocol::RewardResult> on(protocol::ComputeRewards message) {
    return rules_.score(message.requests);
  }

 private:
  rules::Rules rules_;
};

}  // namespace troupe::actors::roles
