// The class of each role's actor and how it is created. All placements (commands/train.cpp,
// under_mpi.cpp, cluster/) use this table.
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#include "actors/runtime/node.h"
#include "launch/recipes/role.h"
#include "launch/run/roles.h"

namespace troupe::launch::run {

/// `From`: RoleParts for a role with a model, RunConfig for one without. A role without a model
/// runs on one rank with an executor of its own.
template <class A, class From>
struct RoleEntry {
  using Actor = A;
  static constexpr bool has_model = std::same_as<From, RoleParts>;
  bool reads_text;  ///< needs RoleParts::text
  A (*make)(const From&);
};

/// One entry per Role, in the order of the enumeration.
inline constexpr std::tuple role_table{
    RoleEntry<actors::roles::Trainer, RoleParts>{false, make_policy},
    RoleEntry<actors::roles::Trainer, RoleParts>{false, make_critic},
    RoleEntry<actors::roles::RewardModels, RoleParts>{true, make_reward},
    RoleEntry<actors::roles::Scorer, RoleParts>{false, make_reference},
    RoleEntry<actors::roles::Rollout, RoleParts>{true, make_rollout},
    RoleEntry<actors::roles::Verifier, config::RunConfig>{false, make_verifier},
};
static_assert(std::tuple_size_v<decltype(role_table)> == recipes::role_names.size());

template <recipes::Role R>
constexpr const auto& role_entry() {
  return std::get<static_cast<std::size_t>(R)>(role_table);
}
template <recipes::Role R>
using RoleEntryOf = std::remove_cvref_t<decltype(role_entry<R>())>;
template <recipes::Role R>
using RoleActor = typename RoleEntryOf<R>::Actor;
/// A reference to the actor of a role, in any process.
template <recipes::Role R>
using RoleRef = decltype(std::declval<actors::Node&>().ref(transports::Address(),
                                                           typename RoleActor<R>::Handled{}));

/// Calls visit.operator()<R>() for every role, in the order of the table.
template <class Visit>
void for_each_role(Visit&& visit) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (visit.template operator()<static_cast<recipes::Role>(I)>(), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(role_table)>>());
}

/// Calls visit.operator()<R>() for R == role.
template <class Visit>
void visit_role(recipes::Role role, Visit&& visit) {
  for_each_role([&]<recipes::Role R>() {
    if (R == role) visit.template operator()<R>();
  });
}

/// A tuple of Holder<Actor> for every role.
template <template <class> class Holder>
using TupleOverRoles = decltype(std::apply(
    [](const auto&... entry) {
      return std::tuple<Holder<typename std::remove_cvref_t<decltype(entry)>::Actor>...>();
    },
    role_table));

}  // namespace troupe::launch::run
