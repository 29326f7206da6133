// The roles of a run's actors, and which of them an algorithm needs besides its policy.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::launch::recipes {

/// Roles, in the order in which the ranks of a group create them.
enum class Role : std::size_t { policy, critic, reward, reference, rollout, verifier };

/// The name of each role in cluster files, node names and messages.
inline constexpr std::array<std::string_view, 6> role_names{"policy",    "critic",  "reward",
                                                            "reference", "rollout", "verifier"};

constexpr std::string_view to_string(Role role) {
  return role_names[static_cast<std::size_t>(role)];
}

constexpr std::optional<Role> role_from(std::string_view name) {
  for (std::size_t i = 0; i < role_names.size(); ++i)
    if (role_names[i] == name) return static_cast<Role>(i);
  return std::nullopt;
}

/// The names of all roles, for messages.
inline std::vector<std::string> role_list() {
  return {role_names.begin(), role_names.end()};
}

struct RoleUse {
  bool needed = false;
  /// Condition under which the algorithm would need a role that it does not need with these
  /// settings. Empty: never.
  std::string_view when = {};
};

struct RolesNeeded {
  RoleUse reference, critic, reward, rollout, verifier;
  bool reference_follows = false;  ///< the reference moves towards the policy, and is saved with it

  /// The policy is always needed.
  RoleUse of(Role role) const {
    switch (role) {
      case Role::policy:
        return {true};
      case Role::critic:
        return critic;
      case Role::reward:
        return reward;
      case Role::reference:
        return reference;
      case Role::rollout:
        return rollout;
      case Role::verifier:
        return verifier;
    }
    return {};
  }
};

}  // namespace troupe::launch::recipes
