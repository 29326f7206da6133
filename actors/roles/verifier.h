// Verifier: judges completions by rules (rules/rules.h).
#pragma once

#include "actors/protocol/generate.h"
#include "actors/roles/rules/rules.h"
#include "actors/runtime/message.h"

namespace troupe::actors::roles {

class Verifier {
 public:
  using Handled = Messages<protocol::Judge>;
  /// The rules were started.
  explicit Verifier(rules::Rules rules) : rules_(std::move(rules)) {}

  std::vector<protocol::Verdict> on(protocol::Judge message) {
    return rules_.judge(message.submissions);
  }

 private:
  rules::Rules rules_;
};

}  // namespace troupe::actors::roles
