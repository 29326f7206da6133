#include "launch/cluster/cluster_file.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "launch/config/yaml.h"
#include "launch/recipes/recipes.h"
#include "launch/run/role_table.h"

namespace troupe::launch {
namespace {

using Kind = YamlNode::Kind;

constexpr int most_groups = 1024, most_ranks = 1024;
const std::vector<std::string> roles = role_names();

class Reader {
 public:
  Reader(std::string where, const RunConfig& config) : where_(std::move(where)), config_(config) {}

  Result<std::vector<GroupSpec>> read(const YamlNode& root) {
    if (root.kind != Kind::map) {
      problem(root, cat("a map with the key groups is expected, found ", to_string(root.kind)));
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
              "groups: a list of groups is expected, such as [{role: policy}, {role: rollout}, "
              "{role: verifier}]");
      return finish();
    }
    for (const YamlNode& each : groups->items) group(each);
    if (problems_.empty()) judge();
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

  void size(const YamlNode& node, const std::string& key, int most, int& into) {
    const std::string& text = node.text;
    const char* end = text.data() + text.size();
    int value = 0;
    const auto read = std::from_chars(text.data(), end, value);
    const bool number = node.kind == Kind::scalar && read.ptr == end && read.ec == std::errc();
    if (number && value >= 1 && value <= most) {
      into = value;
      return;
    }
    problem(node, cat(key, ": a whole number from 1 to ", most, " is expected, found ",
                      node.kind == Kind::scalar ? quote(text) : std::string(to_string(node.kind))));
  }

  void group(const YamlNode& node) {
    if (node.kind != Kind::map)
      return problem(node,
                     cat("a group is a map, such as {role: policy}; found ", to_string(node.kind)));
    GroupSpec spec;
    spec.origin = cat(where_, ':', node.line);
    bool named = false;
    for (const auto& [key, value] : node.members) {
      if (key == "role")
        named = true, role(value, spec.role);
      else if (key == "count")
        size(value, key, most_groups, spec.count);
      else if (key == "parallel")
        grid(value, spec.grid);
      else
        unknown(value, key, {"role", "count", "parallel"});
    }
    if (!named) problem(node, cat("a group needs the key role: ", join(roles, ", ")));
    if (spec.grid.tp * spec.grid.dp > most_ranks)
      problem(node, cat("parallel: a group has at most ", most_ranks, " ranks, ",
                        to_string(spec.grid), " are ", spec.grid.tp * spec.grid.dp));
    groups_.push_back(std::move(spec));
  }

  void role(const YamlNode& node, std::string& into) {
    if (node.kind == Kind::scalar && std::ranges::find(roles, node.text) != roles.end()) {
      into = node.text;
      return;
    }
    const std::string meant = nearest(node.text, roles);
    problem(node,
            cat("role: one of ", join(roles, ", "), " is expected, found ",
                node.kind == Kind::scalar ? quote(node.text) : std::string(to_string(node.kind)),
                meant.empty() ? "" : cat("; did you mean ", meant, "?")));
  }

  void grid(const YamlNode& node, engine::parallel::Grid& into) {
    if (node.kind != Kind::map)
      return problem(node,
                     cat("parallel: a map of tp and dp is expected, found ", to_string(node.kind)));
    for (const auto& [key, value] : node.members) {
      if (key == "tp" || key == "dp")
        size(value, "parallel." + key, most_ranks, key == "tp" ? into.tp : into.dp);
      else
        unknown(value, key, {"tp", "dp"});
    }
  }

  bool needs(const std::string& role) const { return roles_of(config_).of(role).needed; }

  // One cluster file serves runs with a KL term and without: the reference of the latter is not
  // started, and that is said.
  bool idle(const GroupSpec& group) const {
    const RoleUse use = roles_of(config_).of(group.role);
    return !use.needed && !use.when.empty();
  }

  void judge() {
    std::map<std::string, const GroupSpec*> seen;
    for (const GroupSpec& group : groups_) {
      const auto [at, first] = seen.emplace(group.role, &group);
      const bool many = group.role == "rollout";
      if (!first && !many)
        problems_.push_back(cat(group.origin, ": role ", group.role, " stands in ",
                                at->second->origin, " already; it can be there once"));
      if (group.count > 1 && !many)
        problems_.push_back(cat(group.origin, ": count: ", group.count, ": a run has one ",
                                group.role, "; only rollout can be there more than once",
                                group.role == "policy"
                                    ? " (more ranks for the policy: parallel.tp, parallel.dp)"
                                    : ""));
      if (!needs(group.role) && !idle(group))
        problems_.push_back(cat(group.origin, ": role ", group.role, ": ", config_.algorithm,
                                " has no use for this role; take the group out"));
      if (group.role == "verifier" && group.grid.ranks() > 1)
        problems_.push_back(
            cat(group.origin, ": role verifier: it has no model to share; leave parallel out"));
    }
    for (const std::string& role : roles)
      if (needs(role) && !seen.contains(role))
        problems_.push_back(cat(where_, ": ", config_.algorithm, " needs a group of the role ",
                                role, "; add {role: ", role, "}"));
  }

  Result<std::vector<GroupSpec>> finish() {
    if (problems_.empty()) {
      for (const GroupSpec& group : groups_)
        if (idle(group))
          log_warning(cat(group.origin, ": role ", group.role, ": ",
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
  if (!text) return fail(Errc::usage, cat("--cluster: ", text.error().what));
  return parse_cluster(*text, path, config);
}

std::vector<NodeSpec> nodes_of(const std::vector<GroupSpec>& groups) {
  int rollouts = 0, numbered = 0;
  for (const GroupSpec& group : groups) rollouts += group.role == "rollout" ? group.count : 0;
  std::vector<NodeSpec> nodes;
  for (const GroupSpec& group : groups)
    for (int i = 0; i < group.count; ++i) {
      const bool number = group.role == "rollout" && rollouts > 1;
      nodes.push_back(
          {number ? cat(group.role, '-', numbered++) : group.role, group.role, group.grid});
    }
  return nodes;
}

}  // namespace troupe::launch
