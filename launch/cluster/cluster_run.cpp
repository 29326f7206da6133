#include "launch/cluster/cluster_run.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/validate_profile.h"
#include "launch/run/check_grids.h"
#include "launch/run/settings.h"

namespace troupe::launch::cluster {
namespace {

/// Copies parallel.* of the policy from the cluster file to the run. Throws Failure if the run file
/// sets a key to another value.
void take_parallel(recipes::Resolved& run, const NodeSpec& policy, const std::string& cluster) {
  const auto origin = [&](const std::string& key) { return run.origins.at("parallel." + key); };
  const auto contradicts = [&](const std::string& ours, const std::string& theirs,
                               std::string_view where) {
    throw Failure(Error{Errc::usage, cat(ours, " and ", cluster, " (policy: ", theirs,
                                         ") contradict each other; set ", where)});
  };
  const auto& p = run.config.parallel;
  config::RunConfig theirs = run.config;
  theirs.parallel = policy.parallel;
  const auto differs = [&](const std::string& key) {
    const config::Field& field = *config::find_field("parallel." + key);
    return origin(key) != config::default_origin &&
           config::value_text(field, run.config) != config::value_text(field, theirs);
  };
  for (const char* axis : {"tp", "dp", "pp", "cp"})
    if (differs(axis))
      contradicts(cat("parallel.tp ", p.tp, ", parallel.dp ", p.dp, ", parallel.pp ", p.pp,
                      p.cp > 1 ? cat(", parallel.cp ", p.cp) : "", " (", origin(axis), ")"),
                  to_string(policy.parallel), "the grid in the cluster file only");
  for (const std::string& key : policy.given)
    if (differs(key)) {
      const config::Field& field = *config::find_field("parallel." + key);
      contradicts(
          cat(field.key, " = ", config::value_text(field, run.config), " (", origin(key), ")"),
          config::value_text(field, theirs), "it in one of them");
    }
  run.config.parallel = policy.parallel;
}

// Throws Failure where nothing would record what happened to a sample whose process is lost.
void check_recorded(const config::RunConfig& config) {
  if (config.ledger == config::LedgerUse::off)
    throw Failure({Errc::usage,
                   "ledger: expected on in a run of several processes, found off: the ledger has "
                   "what a lost process had done"});
}

// Throws Failure if clients could not reach the server of a rollout.
void check_served(const config::RunConfig& config, const NodeSpec& node) {
  if (config.serve.listen.empty() || node.role != recipes::Role::rollout ||
      node.parallel.ranks() == 1)
    return;
  throw Failure({Errc::usage, cat("serve.listen: expected rollouts of one process each, found ",
                                  node.name, " with ", node.parallel.ranks(),
                                  " ranks, whose network namespace no client can reach")});
}

/// Assigns the groups of a cluster file, and the hosts that they run on.
void place(ClusterFile file, const std::string& cluster, std::optional<Via> asked,
           ClusterRun& out) {
  const bool has_hosts = !file.hosts.all.empty();
  const Via via = asked.value_or(has_hosts ? Via::ssh : Via::local);
  if (via == Via::ssh && !has_hosts)
    throw Failure({Errc::usage, cat("--via ssh: ", cluster,
                                    " has no hosts; add them: "
                                    "hosts: [{name: a, slots: 4}]")});
  const bool places = has_hosts && via != Via::local;
  out.nodes = places ? value_or_throw(placed_nodes_of(file)) : nodes_of(file.groups);
  if (has_hosts && !places) out.run.warnings.push_back("--via local: all groups run on this host");
  if (via == Via::local) return;
  out.hosts = std::move(file.hosts);
  out.hosts.via = via;
}

}  // namespace

int largest_group(const std::vector<NodeSpec>& nodes) {
  int largest = 1;
  for (const NodeSpec& node : nodes) largest = std::max(largest, node.parallel.ranks());
  return largest;
}

ClusterRun resolve_cluster(const recipes::Sources& sources, const std::string& cluster,
                           std::optional<Via> via) {
  ClusterRun out{value_or_throw(recipes::resolve(sources)), {}, {}};
  recipes::Resolved& run = out.run;
  place(value_or_throw(read_cluster(cluster, run.config)), cluster, via, out);
  if (auto lower = value_or_throw(run::limit_max_length(run.config)); !lower.empty())
    run.warnings.push_back(std::move(lower));
  if (run.config.rollout.threads > 0)
    run.warnings.push_back(cat("rollout.threads = ", run.config.rollout.threads,
                               ": has no effect in a cluster, where rollouts are processes of "
                               "their own"));
  for (const NodeSpec& node : out.nodes)
    if (node.role == recipes::Role::policy) take_parallel(run, node, cluster);
  value_or_throw(recipes::check_profile_ranks(run.config, largest_group(out.nodes)));
  check_recorded(run.config);
  for (const NodeSpec& node : out.nodes) {
    value_or_throw(
        run::check_grid(config_on(node, run.config), node.role, node.parallel, node.name));
    check_served(run.config, node);
  }
  return out;
}

}  // namespace troupe::launch::cluster
