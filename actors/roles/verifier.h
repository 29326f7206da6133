// Verifier: scores completions by rules (rules/rules.h).
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

  std::vector<protocol::RewardResult> on(protocol::ComputeRewards message) {
    return rules_.score(message.requests);
  }

 private:
  rules::Rules rules_;
};

}  // namespace troupe::actors::roles
