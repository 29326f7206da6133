// The roles of a run, once: the word that cluster files, nodes and messages have for each, its
// class, what it is made from, and how the ranks of a group share it. The places where runs live
// (train.cpp, mpirun.cpp, cluster/) go through this table.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "actors/runtime/node.h"
#include "launch/run/reward_role.h"
#include "launch/run/roles.h"

namespace troupe::launch {

/// Places in the table, which is the order in which a group makes them.
enum class Role : std::size_t { policy, critic, reward, reference, rollout, verifier };

/// How the ranks of the group that trains share the role: as parallel.* says, or each has the whole
/// model and a part of every batch.
enum class Sharing { grid, replicas };

/// `From`: RoleParts of a role with a model, RunConfig of one without, which stands alone and has a
/// lane of its own.
template <class A, class From>
struct RoleEntry {
  using Actor = A;
  static constexpr bool has_model = std::same_as<From, RoleParts>;
  std::string_view name;
  Sharing sharing;
  bool reads_text;  ///< RoleParts::text is there
  A (*make)(const From&);
};

inline constexpr std::tuple role_table{
    RoleEntry<actors::roles::Trainer, RoleParts>{"policy", Sharing::grid, false, make_policy},
    RoleEntry<actors::roles::Trainer, RoleParts>{"critic", Sharing::grid, false, make_critic},
    RoleEntry<actors::roles::RewardModels, RoleParts>{"reward", Sharing::replicas, true,
                                                      make_reward},
    RoleEntry<actors::roles::Scorer, RoleParts>{"reference", Sharing::replicas, false,
                                                make_reference},
    RoleEntry<actors::roles::Rollout, RoleParts>{"rollout", Sharing::replicas, true, make_rollout},
    RoleEntry<actors::roles::Verifier, RunConfig>{"verifier", Sharing::replicas, false,
                                                  make_verifier},
};

template <Role R>
constexpr const auto& role_entry() {
  return std::get<static_cast<std::size_t>(R)>(role_table);
}
template <Role R>
using RoleEntryOf = std::remove_cvref_t<decltype(role_entry<R>())>;
template <Role R>
using RoleActor = typename RoleEntryOf<R>::Actor;
/// A reference to the role's actor, wherever it lives.
template <Role R>
using RoleRef = decltype(std::declval<actors::Node&>().ref(transports::Address(),
                                                           typename RoleActor<R>::Handled{}));

/// visit.operator()<R>() for every role, in the order of the table.
template <class Visit>
void for_each_role(Visit&& visit) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (visit.template operator()<static_cast<Role>(I)>(), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(role_table)>>());
}

/// A tuple of Holder<actor> for every role.
template <template <class> class Holder>
using OfEachRole = decltype(std::apply(
    [](const auto&... entry) {
      return std::tuple<Holder<typename std::remove_cvref_t<decltype(entry)>::Actor>...>();
    },
    role_table));

/// The words of all roles.
inline std::vector<std::string> role_names() {
  std::vector<std::string> names;
  for_each_role([&]<Role R>() { names.emplace_back(role_entry<R>().name); });
  return names;
}

}  // namespace troupe::launch
