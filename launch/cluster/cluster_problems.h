// What is wrong in a cluster file, collected line by line.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/config/yaml.h"

namespace troupe::launch::cluster {

class ClusterProblems {
 public:
  /// `where`: the name of the file in messages.
  explicit ClusterProblems(std::string where) : where_(std::move(where)) {}

  void at(const config::YamlNode& node, const std::string& text) {
    all_.push_back(cat(place(node), ": ", text));
  }
  /// A problem whose text names its place.
  void add(std::string text) { all_.push_back(std::move(text)); }
  void unknown_key(const config::YamlNode& node, const std::string& key,
                   const std::vector<std::string>& known) {
    const std::string meant = nearest(key, known);
    at(node, cat("unknown key ", quote(key), "; ",
                 meant.empty() ? cat("known are ", join(known, ", "))
                               : cat("did you mean ", meant, "?")));
  }
  /// Assigns `into` where the value is an integer from `min` to `max`.
  void integer(const config::YamlNode& node, const std::string& key, int min, int max, int& into) {
    const auto value =
        node.kind == config::YamlNode::Kind::scalar ? parse_number<int>(node.text) : std::nullopt;
    if (value && *value >= min && *value <= max)
      into = *value;
    else
      at(node, cat(key, ": expected an integer from ", min, " to ", max, ", found ", found(node)));
  }
  /// A value as messages show it: scalars as text, others by their kind.
  static std::string found(const config::YamlNode& node) {
    return node.kind == config::YamlNode::Kind::scalar ? quote(node.text)
                                                       : std::string(to_string(node.kind));
  }
  /// "cluster.yaml:3"
  std::string place(const config::YamlNode& node) const {
    return cat(where_, ':', std::max(node.line, 1));
  }
  const std::string& where() const { return where_; }
  const std::vector<std::string>& all() const { return all_; }
  bool empty() const { return all_.empty(); }

 private:
  std::string where_;
  std::vector<std::string> all_;
};

}  // namespace troupe::launch::cluster
