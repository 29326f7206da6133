#include "launch/cluster/cluster_file.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <type_traits>

#include "engine/base/files/file.h"
#include "engine/base/log/log.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/config/yaml.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/validate_parallel.h"
#include "launch/run/settings.h"

namespace troupe::launch::cluster {
namespace {

using Kind = config::YamlNode::Kind;

constexpr int max_groups = 1024, max_ranks = 1024;

class Reader {
 public:
  Reader(const std::string& where, const config::RunConfig& config)
      : problems_(where), config_(config) {}

  Result<ClusterFile> read(const config::YamlNode& root) {
    if (root.kind != Kind::map) {
      problems_.at(root, cat("expected a map with the key groups, found ", to_string(root.kind)));
      return finish();
    }
    const config::YamlNode* groups = nullptr;
    std::vector<std::string> known = host_keys();
    known.push_back("groups");
    for (const auto& [key, value] : root.members) {
      if (key == "groups")
        groups = &value;
      else if (std::ranges::count(known, key) == 0)
        problems_.unknown_key(value, key, known);
    }
    hosts_ = read_hosts(root, problems_);
    if (!groups || groups->kind != Kind::list || groups->items.empty()) {
      problems_.at(groups ? *groups : root,
                   "groups: expected a list of groups, such as [{role: policy}, {role: rollout}, "
                   "{role: verifier}]");
      return finish();
    }
    for (const config::YamlNode& each : groups->items) group(each);
    if (problems_.empty()) validate();
    if (problems_.empty()) complete_parallel();
    return finish();
  }

 private:
  void group(const config::YamlNode& node) {
    if (node.kind != Kind::map)
      return problems_.at(node, cat("expected a map for a group, such as {role: policy}; found ",
                                    to_string(node.kind)));
    GroupSpec spec;
    spec.origin = problems_.place(node);
    bool named = false;
    for (const auto& [key, value] : node.members) {
      if (key == "role")
        named = role(value, spec.role);
      else if (key == "count")
        problems_.integer(value, key, 1, max_groups, spec.count);
      else if (key == "parallel")
        grid(value, spec);
      else if (key == "host" || key == "hosts")
        hosts(value, spec);
      else
        problems_.unknown_key(value, key, {"role", "count", "parallel", "host", "hosts"});
    }
    if (!named)
      problems_.at(node, cat("a group needs the key role: ", join(recipes::role_list(), ", ")));
    // Each axis has at most 1024 ranks.
    const config::ParallelConfig& axes = spec.parallel;
    const std::int64_t ranks = std::int64_t{axes.tp} * axes.dp * axes.pp * axes.cp;
    if (ranks > max_ranks)
      problems_.at(node, cat("parallel: a group has at most ", max_ranks, " ranks, ",
                             to_string(axes), " are ", ranks));
    groups_.push_back(std::move(spec));
  }

  void hosts(const config::YamlNode& node, GroupSpec& into) {
    if (!into.hosts.empty()) problems_.at(node, "a group has host or hosts, not both");
    into.hosts = read_host_names(node, hosts_, problems_);
  }

  // Returns true: the key was given, even if its value is not a role.
  bool role(const config::YamlNode& node, recipes::Role& into) {
    const auto found = node.kind == Kind::scalar ? recipes::role_from(node.text) : std::nullopt;
    if (found) {
      into = *found;
      return true;
    }
    const std::string meant = nearest(node.text, recipes::role_list());
    problems_.at(
        node, cat("role: expected one of ", join(recipes::role_list(), ", "), "; found ",
                  node.kind == Kind::scalar ? quote(node.text) : std::string(to_string(node.kind)),
                  meant.empty() ? "" : cat("; did you mean ", meant, "?")));
    return true;
  }

  void grid(const config::YamlNode& node, GroupSpec& into) {
    if (node.kind != Kind::map)
      return problems_.at(
          node, cat("parallel: expected a map with tp, dp and pp, found ", to_string(node.kind)));
    for (const auto& [key, value] : node.members) {
      config::ParallelConfig& p = into.parallel;
      const std::map<std::string, int*> axes{
          {"tp", &p.tp}, {"dp", &p.dp}, {"pp", &p.pp}, {"cp", &p.cp}};
      const std::string full = "parallel." + key;
      const config::Field* field = config::find_field(full);
      if (field == nullptr || std::ranges::count(parallel_keys(), key) == 0) {
        problems_.unknown_key(value, key, parallel_keys());
        continue;
      }
      into.given.push_back(key);
      if (const auto axis = axes.find(key); axis != axes.end()) {
        problems_.integer(value, full, 1, max_ranks, *axis->second);
      } else if (key == "zero") {
        zero(value, p.zero);
      } else {
        setting(value, *field, p);
      }
    }
  }

  static std::vector<std::string> parallel_keys() {
    std::vector<std::string> keys;
    config::ParallelConfig any;
    config::ParallelConfig::each_field(any,
                                       [&](const char* key, auto&&...) { keys.emplace_back(key); });
    return keys;
  }

  // A key with the values that it has in a run's configuration.
  void setting(const config::YamlNode& node, const config::Field& field,
               config::ParallelConfig& into) {
    config::RunConfig scratch;
    scratch.parallel = into;
    std::string why = config::assign(field, node, scratch);
    config::each_number_out_of_range(scratch, [&](const config::Field& wrong, double, bool) {
      if (wrong.key == field.key && why.empty()) why = cat("must be ", config::allowed_text(wrong));
    });
    if (!why.empty()) return problems_.at(node, cat(field.key, ": ", why));
    into = scratch.parallel;
  }

  void zero(const config::YamlNode& node, int& into) {
    if (node.kind == Kind::scalar && (node.text == "0" || node.text == "1"))
      into = node.text == "1" ? 1 : 0;
    else
      problems_.at(
          node,
          cat("parallel.zero: expected 0 or 1, found ",
              node.kind == Kind::scalar ? quote(node.text) : std::string(to_string(node.kind)),
              "; gradients and weights are divided over ranks by parallel.tp and parallel.pp"));
  }

  // What the policy has from the run and the critic from the policy, and whether the keys of each
  // group fit together.
  void complete_parallel() {
    config::ParallelConfig policy = config_.parallel;
    for (GroupSpec& group : groups_)
      if (group.role == recipes::Role::policy)
        policy = group.parallel = merged(config_.parallel, group, {"tp", "dp", "pp", "cp"});
    for (GroupSpec& group : groups_) {
      if (group.role == recipes::Role::critic) {
        config::ParallelConfig followed;
        followed.zero = policy.zero;
        followed.overlap = policy.overlap;
        followed.order = policy.order;
        group.parallel = merged(followed, group, {});
      }
      check_parallel(group);
    }
  }

  // `base` with the keys that the group gives, and `always`.
  static config::ParallelConfig merged(const config::ParallelConfig& base, const GroupSpec& group,
                                       const std::vector<std::string>& always) {
    config::ParallelConfig out = base;
    config::ParallelConfig::each_field(out, [&](const char* key, auto& to, auto&&...) {
      if (std::ranges::count(group.given, key) + std::ranges::count(always, key) == 0) return;
      config::ParallelConfig::each_field(group.parallel, [&](const char* name, auto& from,
                                                             auto&&...) {
        if constexpr (std::is_same_v<std::remove_const_t<std::remove_reference_t<decltype(from)>>,
                                     std::remove_reference_t<decltype(to)>>)
          if (std::string_view(name) == key) to = from;
      });
    });
    return out;
  }

  void check_parallel(const GroupSpec& group) {
    config::RunConfig as_run = config_;
    as_run.parallel = group.parallel;
    config::Origins origins;
    for (const config::Field& field : config::fields())
      origins.emplace(field.key, config::default_origin);
    for (const std::string& key : group.given) origins["parallel." + key] = group.origin;
    recipes::Findings findings;
    recipes::validate_group(as_run, group.role, origins, findings);
    for (const std::string& each : findings.problems) problems_.add(cat(group.origin, ": ", each));
    for (const std::string& each : findings.warnings) log_warning(each);
  }

  bool needs(recipes::Role role) const { return recipes::roles_of(config_).of(role).needed; }

  // True for a reference group of a run without a KL term: one cluster file serves runs with and
  // without one. The group is not started, with a warning.
  bool idle(const GroupSpec& group) const {
    const recipes::RoleUse use = recipes::roles_of(config_).of(group.role);
    return !use.needed && !use.when.empty();
  }

  void validate() {
    std::map<recipes::Role, const GroupSpec*> seen;
    for (const GroupSpec& group : groups_) {
      const auto [at, first] = seen.emplace(group.role, &group);
      const std::string role(to_string(group.role));
      const bool many = group.role == recipes::Role::rollout;
      if (!first && !many)
        problems_.add(cat(group.origin, ": role ", role, " is already in ", at->second->origin,
                          "; only rollout may appear more than once"));
      if (group.count > 1 && !many)
        problems_.add(
            cat(group.origin, ": count: ", group.count, ": a run has one ", role,
                "; only rollout may appear more than once",
                group.role == recipes::Role::policy
                    ? " (more ranks for the policy: parallel.tp, parallel.dp, parallel.pp)"
                    : ""));
      if (!needs(group.role) && !idle(group))
        problems_.add(cat(group.origin, ": role ", role, ": ", config_.algorithm,
                          " does not use this role; remove the group"));
      if (group.role == recipes::Role::verifier && group.parallel.ranks() > 1)
        problems_.add(
            cat(group.origin, ": role verifier: it has no model to shard; remove parallel"));
    }
    for (const recipes::Role role : recipes::roles_with_section)
      if (needs(role) && recipes::has_grid(config_, role))
        problems_.add(cat(problems_.where(), ": parallel.", to_string(role),
                          ": with a cluster file the group of the role has the keys of this "
                          "section: {role: ",
                          to_string(role), ", parallel: {...}}; remove the section"));
    for (const std::string& name : recipes::role_list())
      if (const recipes::Role role = *recipes::role_from(name); needs(role) && !seen.contains(role))
        problems_.add(cat(problems_.where(), ": ", config_.algorithm, " needs a group with role ",
                          name, "; add {role: ", name, "}"));
  }

  Result<ClusterFile> finish() {
    if (problems_.empty()) {
      for (const GroupSpec& group : groups_)
        if (idle(group))
          log_warning(cat(group.origin, ": role ", to_string(group.role), ": ",
                          recipes::roles_of(config_).of(group.role).when, "; it is not started"));
      std::erase_if(groups_, [this](const GroupSpec& group) { return idle(group); });
      return ClusterFile{std::move(groups_), std::move(hosts_)};
    }
    const auto& all = problems_.all();
    const std::string head = all.size() == 1
                                 ? "the cluster file has a problem:"
                                 : cat("the cluster file has ", all.size(), " problems:");
    return fail(Errc::usage, cat(head, "\n  - ", join(all, "\n  - ")));
  }

  ClusterProblems problems_;
  const config::RunConfig& config_;
  Hosts hosts_;
  std::vector<GroupSpec> groups_;
};

}  // namespace

Result<ClusterFile> parse_cluster(std::string_view text, const std::string& where,
                                  const config::RunConfig& config) {
  const auto root = config::parse_yaml(text, where);
  RETURN_IF_ERROR(root);
  return Reader(where, config).read(*root);
}

Result<ClusterFile> read_cluster(const std::string& path, const config::RunConfig& config) {
  const auto text = read_file(path, 1u << 20);
  if (!text)
    return fail(text.error().code == Errc::not_found ? Errc::not_found : Errc::usage,
                cat("--cluster: ", text.error().what));
  return parse_cluster(*text, path, config);
}

std::vector<NodeSpec> nodes_of(const std::vector<GroupSpec>& groups) {
  int rollouts = 0, numbered = 0;
  for (const GroupSpec& group : groups)
    rollouts += group.role == recipes::Role::rollout ? group.count : 0;
  std::vector<NodeSpec> nodes;
  for (const GroupSpec& group : groups)
    for (int i = 0; i < group.count; ++i) {
      const std::string name(to_string(group.role));
      const bool number = group.role == recipes::Role::rollout && rollouts > 1;
      nodes.push_back(
          {number ? cat(name, '-', numbered++) : name, group.role, group.parallel, group.given});
    }
  return nodes;
}

Result<std::vector<NodeSpec>> placed_nodes_of(const ClusterFile& file) {
  std::vector<NodeSpec> nodes = nodes_of(file.groups);
  Slots slots(file.hosts);
  auto node = nodes.begin();
  for (const GroupSpec& group : file.groups)
    for (int i = 0; i < group.count; ++i, ++node) {
      auto blocks = slots.take(group.parallel.ranks(), group.hosts);
      if (!blocks)
        return fail(blocks.error().code,
                    cat(group.origin, ": ", node->name, ": ", blocks.error().what));
      node->blocks = std::move(*blocks);
    }
  return nodes;
}

config::RunConfig config_on(const NodeSpec& node, config::RunConfig config) {
  config.parallel = node.parallel;
  for (config::RoleParallelConfig* section : {&config.reference_parallel, &config.reward_parallel,
                                              &config.rollout_parallel, &config.critic_parallel})
    *section = {};
  return config;
}

}  // namespace troupe::launch::cluster
