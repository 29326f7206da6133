// Placement: where the actors of a run are: in this process (commands/train.cpp), over the ranks of
// one mpirun (under_mpi.cpp), or in the groups of a cluster (cluster/launcher.cpp).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "actors/runtime/node.h"
#include "actors/runtime/thread_scheduler.h"
#include "algorithms/training/recovery.h"
#include "launch/run/role_table.h"
#include "transports/inproc/loopback.h"

namespace troupe::launch::run {

class Placement {
 public:
  virtual ~Placement() = default;
  /// The node that executes the algorithm.
  virtual actors::Node& node() = 0;
  /// Addresses of the actors with this role: one, or one for each rollout group. Starts them or
  /// waits for them. Throws Failure.
  virtual std::vector<transports::Address> addresses(recipes::Role role) = 0;
  /// Requests per rollout, as in algorithms::Cluster: above 1 where the rollouts and the reference
  /// can work at the same time.
  virtual std::size_t chunks_per_rollout() const { return 1; }

  /// Of the rollouts, where processes are replaced; their addresses are those of incarnations then.
  virtual algorithms::Recovery* recovery() { return nullptr; }

  /// Whether the receivers of weights are ranks beside that of the algorithm: a WeightStream then
  /// brings the weights to them, in memory that the ranks of a host share.
  virtual bool streams_weights() const { return false; }

  template <recipes::Role R>
  std::vector<RoleRef<R>> actors() {
    std::vector<RoleRef<R>> refs;
    for (auto& address : addresses(R))
      refs.push_back(node().ref(std::move(address), typename RoleActor<R>::Handled{}));
    return refs;
  }
  template <recipes::Role R>
  RoleRef<R> actor() {
    return actors<R>().front();
  }
};

/// The node of a placement whose actors are all spawned in this process.
class LocalNode {
 public:
  explicit LocalNode(actors::NodeOptions options)
      : node_("process", scheduler_, transport_, std::move(options)) {}
  actors::Node& node() { return node_; }

  /// The address of the role's actor, which the first call spawns: `spawn.operator()<R>(name)` if
  /// the role has a model.
  template <class Spawn>
  std::vector<transports::Address> address(recipes::Role role, const config::RunConfig& config,
                                           const Spawn& spawn) {
    const std::string name(to_string(role));
    if (spawned_.insert(role).second) {
      visit_role(role, [&]<recipes::Role R>() {
        if constexpr (RoleEntryOf<R>::has_model)
          spawn.template operator()<R>(name);
        else
          node_.spawn(name, role_entry<R>().make(config), {.executor = name});
      });
    }
    return {{node_.name(), name}};
  }

 private:
  actors::ThreadScheduler scheduler_;
  transports::Loopback transport_;
  actors::Node node_;
  std::set<recipes::Role> spawned_;
};

}  // namespace troupe::launch::run
