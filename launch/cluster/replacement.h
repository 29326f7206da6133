// Replacement: which processes of a launch are replaced when they are lost, and how often.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "algorithms/training/recovery.h"
#include "launch/cluster/cluster_file.h"
#include "launch/cluster/restart_budget.h"
#include "launch/cluster/supervisor.h"
#include "transports/transport.h"

namespace troupe::launch::cluster {

/// Names of the nodes that are replaced: rollouts, unless rollout.parity_sample asks each of them
/// for more than samples; verifier and reward models; a reference that does not move.
std::set<std::string> replaced_nodes(const config::RunConfig& config,
                                     const std::vector<NodeSpec>& nodes);

class Replacement {
 public:
  Replacement(const config::RunConfig& config, const std::vector<NodeSpec>& nodes);

  bool replaces(const std::string& node) const { return roles_.contains(node); }
  /// Those of them that keep nothing between two messages: the messages of one that was lost are
  /// sent to its successor.
  std::set<std::string> stateless() const;
  /// nullptr: no rollout is replaced.
  algorithms::Recovery* recovery() { return recovery_ ? &*recovery_ : nullptr; }

  /// Processes of a node that took the place of another one. From any thread.
  std::int64_t restarts(const std::string& node) const;
  /// Whether another process may take the place of one that was lost; counts it. Otherwise `lost`
  /// gets the exit code of the run and the reason, if the budget is used up. One thread calls it.
  bool admits(ExitedProcess& lost);

  // On the control executor of the node.
  void joined(const std::string& node, std::uint64_t incarnation);
  void lost(const std::string& node, std::uint64_t incarnation);
  void late(transports::Frame frame);
  void end();

  /// Called when two results of one sample differ.
  void on_divergence(std::function<void()> found) { on_divergence_ = std::move(found); }
  /// What was found, or "". From any thread.
  std::string divergence() const;

 private:
  const config::RecoveryConfig config_;
  std::map<std::string, recipes::Role> roles_;  ///< of the nodes that are replaced
  RestartBudget budget_;
  std::optional<algorithms::Recovery> recovery_;
  std::function<void()> on_divergence_;
  mutable std::mutex mutex_;  // of what follows
  std::map<std::string, std::int64_t> restarts_;
  std::string divergence_;
};

}  // namespace troupe::launch::cluster
