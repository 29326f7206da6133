// Verifier: judges completions by rules (rules/rules.h).
#pragma once

#include "actors/protocol/generate.h"
#include "actors/roles/rules/rules.h"
#include "actors/runtime/message.h"

namespace troupe::actors::roles {

class Verifier {
 public:
  using Handled = Messages<protocol::Judge>;
  explicit Verifier(rules::Rules rules) : rules_(std::move(rules)) {}

  std::vector<protocol::Verdict> on(protocol::Judge message) {
    std::vector<protocol::Verdict> verdicts;
    for (const auto& submission : message.submissions) verdicts.push_back(rules_.judge(submission));
    return verdicts;
  }

 private:
  rules::Rules rules_;
};

}  // namespace troupe::actors::roles
