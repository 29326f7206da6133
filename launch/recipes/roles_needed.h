// Which actors a run needs besides its policy.
#pragma once

#include <string_view>

namespace troupe::launch {

struct RoleUse {
  bool needed = false;
  /// Of a role that the algorithm has a use for, but not with these settings: when it would be
  /// needed. Empty: never.
  std::string_view when = {};
};

struct RolesNeeded {
  RoleUse reference, critic, reward, rollout, verifier;
  bool reference_follows = false;  ///< the reference moves towards the policy, and is saved with it

  /// By the name that cluster files have for it; the policy is always needed.
  RoleUse of(std::string_view role) const {
    if (role == "policy") return {true};
    if (role == "reference") return reference;
    if (role == "critic") return critic;
    if (role == "reward") return reward;
    if (role == "rollout") return rollout;
    return role == "verifier" ? verifier : RoleUse{};
  }
};

}  // namespace troupe::launch
