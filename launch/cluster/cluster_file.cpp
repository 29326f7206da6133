#include "launch/cluster/cluster_file.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "launch/config/yaml.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch {
namespace {

using Kind = YamlNode::Kind;

constexpr int max_groups = 1024, max_ranks = 1024;

class Reader {
 public:
  Reader(std::string where, const RunConfig& config) : where_(std::move(where)), config_(config) {}

  Result<std::vector<GroupSpec>> read(const YamlNode& root) {
    if (root.kind != Kind::map) {
      problem(root, cat("expected a map with the key groups, found ", to_string(root.kind)));
      return finish();
    }
    const YamlNode* groups = nullptr;
    for (const auto& [key, value] : root.members) {
      if (key == "groups")
        groups = &value;
      else
        unknown(value, key, {"groups"});
    }
    if (!groups || groups->kind != Kind::list || groups->items.empty()) {
      problem(groups ? *groups : root,
              "groups: expected a list of groups, such as [{role: policy}, {role: rollout}, "
              "{role: verifier}]");
      return finish();
    }
    for (const YamlNode& each : groups->items) group(each);
    if (problems_.empty()) validate();
    return finish();
  }

 private:
  void problem(const YamlNode& at, const std::string& text) {
    problems_.push_back(cat(where_, ':', std::max(at.line, 1), ": ", text));
  }

  void unknown(const YamlNode& at, const std::string& key, const std::vector<std::string>& known) {
    const std::string meant = nearest(key, known);
    problem(at, cat("unknown key ", quote(key), "; ",
                    meant.empty() ? cat("known are ", join(known, ", "))
                                  : cat("did you mean ", meant, "?")));
  }

  void size(const YamlNode& node, const std::string& key, int max, int& into) {
    const std::string& text = node.text;
    const char* end = text.data() + text.size();
    int value = 0;
    const auto read = std::from_chars(text.data(), end, value);
    const bool number = node.kind == Kind::scalar && read.ptr == end && read.ec == std::errc();
    if (number && value >= 1 && value <= max) {
      into = value;
      return;
    }
    problem(node, cat(key, ": expected an integer from 1 to ", max, ", found ",
                      node.kind == Kind::scalar ? quote(text) : std::string(to_string(node.kind))));
  }

  void group(const YamlNode& node) {
    if (node.kind != Kind::map)
      return problem(node, cat("expected a map for a group, such as {role: policy}; found ",
                               to_string(node.kind)));
    GroupSpec spec;
    spec.origin = cat(where_, ':', node.line);
    bool named = false;
    for (const auto& [key, value] : node.members) {
      if (key == "role")
        named = role(value, spec.role);
      else if (key == "count")
        size(value, key, max_groups, spec.count);
      else if (key == "parallel")
        grid(value, spec);
      else
        unknown(value, key, {"role", "count", "parallel"});
    }
    if (!named) problem(node, cat("a group needs the key role: ", join(role_list(), ", ")));
    // Each axis has at most 1024 ranks: three of them fit an int.
    if (spec.grid.ranks() > max_ranks)
      problem(node, cat("parallel: a group has at most ", max_ranks, " ranks, ",
                        to_string(spec.grid), " are ", spec.grid.ranks()));
    if (spec.zero >= 0 && named && spec.role != Role::policy)
      problem(node, "parallel.zero: only for the policy; the other trained models follow it");
    const bool trained = spec.role == Role::policy || spec.role == Role::critic;
    if (spec.grid.pp > 1 && named && !trained)
      problem(node, cat("parallel.pp: only the policy and the critic have stages; give a ",
                        to_string(spec.role), " tp or dp"));
    groups_.push_back(std::move(spec));
  }

  // Returns true: the key was given, even if its value is not a role.
  bool role(const YamlNode& node, Role& into) {
    const auto found = node.kind == Kind::scalar ? role_from(node.text) : std::nullopt;
    if (found) {
      into = *found;
      return true;
    }
    const std::string meant = nearest(node.text, role_list());
    problem(node,
            cat("role: expected one of ", join(role_list(), ", "), "; found ",
                node.kind == Kind::scalar ? quote(node.text) : std::string(to_string(node.kind)),
                meant.empty() ? "" : cat("; did you mean ", meant, "?")));
    return true;
  }

  void grid(const YamlNode& node, GroupSpec& into) {
    if (node.kind != Kind::map)
      return problem(
          node, cat("parallel: expected a map with tp, dp and pp, found ", to_string(node.kind)));
    for (const auto& [key, value] : node.members) {
      const std::map<std::string, int*> axes{
          {"tp", &into.grid.tp}, {"dp", &into.grid.dp}, {"pp", &into.grid.pp}};
      if (const auto axis = axes.find(key); axis != axes.end())
        size(value, "parallel." + key, max_ranks, *axis->second);
      else if (key == "zero")
        zero(value, into.zero);
      else
        unknown(value, key, {"tp", "dp", "pp", "zero"});
    }
  }

  void zero(const YamlNode& node, int& into) {
    if (node.kind == Kind::scalar && (node.text == "0" || node.text == "1"))
      into = node.text == "1" ? 1 : 0;
    else
      problem(node,
              cat("parallel.zero: expected 0 or 1, found ",
                  node.kind == Kind::scalar ? quote(node.text) : std::string(to_string(node.kind)),
                  "; gradients and weights are divided over ranks by parallel.tp and parallel.pp"));
  }

  bool needs(Role role) const { return roles_of(config_).of(role).needed; }

  // True for a reference group of a run without a KL term: one cluster file serves runs with and
  // without one. The group is not started, with a warning.
  bool idle(const GroupSpec& group) const {
    const RoleUse use = roles_of(config_).of(group.role);
    return !use.needed && !use.when.empty();
  }

  void validate() {
    std::map<Role, const GroupSpec*> seen;
    for (const GroupSpec& group : groups_) {
      const auto [at, first] = seen.emplace(group.role, &group);
      const std::string role(to_string(group.role));
      const bool many = group.role == Role::rollout;
      if (!first && !many)
        problems_.push_back(cat(group.origin, ": role ", role, " is already in ",
                                at->second->origin, "; only rollout may appear more than once"));
      if (group.count > 1 && !many)
        problems_.push_back(
            cat(group.origin, ": count: ", group.count, ": a run has one ", role,
                "; only rollout may appear more than once",
                group.role == Role::policy
                    ? " (more ranks for the policy: parallel.tp, parallel.dp, parallel.pp)"
                    : ""));
      if (!needs(group.role) && !idle(group))
        problems_.push_back(cat(group.origin, ": role ", role, ": ", config_.algorithm,
                                " does not use this role; remove the group"));
      if (group.role == Role::verifier && group.grid.ranks() > 1)
        problems_.push_back(
            cat(group.origin, ": role verifier: it has no model to shard; remove parallel"));
    }
    for (const std::string& name : role_list())
      if (const Role role = *role_from(name); needs(role) && !seen.contains(role))
        problems_.push_back(cat(where_, ": ", config_.algorithm, " needs a group with role ", name,
                                "; add {role: ", name, "}"));
  }

  Result<std::vector<GroupSpec>> finish() {
    if (problems_.empty()) {
      for (const GroupSpec& group : groups_)
        if (idle(group))
          log_warning(cat(group.origin, ": role ", to_string(group.role), ": ",
                          roles_of(config_).of(group.role).when, "; it is not started"));
      std::erase_if(groups_, [this](const GroupSpec& group) { return idle(group); });
      return std::move(groups_);
    }
    const std::string head = problems_.size() == 1
                                 ? "the cluster file has a problem:"
                                 : cat("the cluster file has ", problems_.size(), " problems:");
    return fail(Errc::usage, cat(head, "\n  - ", join(problems_, "\n  - ")));
  }

  std::string where_;
  const RunConfig& config_;
  std::vector<GroupSpec> groups_;
  std::vector<std::string> problems_;
};

}  // namespace

Result<std::vector<GroupSpec>> parse_cluster(std::string_view text, const std::string& where,
                                             const RunConfig& config) {
  const auto root = parse_yaml(text, where);
  RETURN_IF_ERROR(root);
  return Reader(where, config).read(*root);
}

Result<std::vector<GroupSpec>> read_cluster(const std::string& path, const RunConfig& config) {
  const auto text = read_file(path, 1u << 20);
  if (!text)
    return fail(text.error().code == Errc::not_found ? Errc::not_found : Errc::usage,
                cat("--cluster: ", text.error().what));
  return parse_cluster(*text, path, config);
}

std::vector<NodeSpec> nodes_of(const std::vector<GroupSpec>& groups) {
  int rollouts = 0, numbered = 0;
  for (const GroupSpec& group : groups) rollouts += group.role == Role::rollout ? group.count : 0;
  std::vector<NodeSpec> nodes;
  for (const GroupSpec& group : groups)
    for (int i = 0; i < group.count; ++i) {
      const std::string name(to_string(group.role));
      const bool number = group.role == Role::rollout && rollouts > 1;
      nodes.push_back(
          {number ? cat(name, '-', numbered++) : name, group.role, group.grid, group.zero});
    }
  return nodes;
}

}  // namespace troupe::launch
