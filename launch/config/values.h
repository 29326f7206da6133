// Values: the types that a setting can have, how each is read from YAML, and how it is written.
// read_value returns "" or what is wrong, and then leaves the value as it was.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "algorithms/losses/averaging.h"
#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"
#include "launch/config/data_config.h"
#include "launch/config/rollout_config.h"
#include "launch/config/train_config.h"
#include "launch/config/yaml.h"
#include "launch/model/model_overrides.h"

namespace troupe::launch::config {

enum class ValueKind {
  text,
  whole,
  number,
  boolean,
  choice,
  texts,
  numbers,
  choices,
  map,
  rules,
  sources,
  words,
  biases
};
constexpr std::array<std::string_view, 13> names_of(ValueKind) {
  return {"text",
          "whole number",
          "number",
          "true or false",
          "word",
          "list of texts",
          "list of numbers",
          "list of words",
          "map",
          "list of rules",
          "list of sources",
          "list of texts and lists of ids",
          "list of [ids, bias]"};
}
/// Lists and maps, which --set accepts in YAML's flow style.
constexpr bool is_collection(ValueKind kind) {
  return kind >= ValueKind::texts;
}

template <class T>
constexpr bool is_vector = false;
template <class T>
constexpr bool is_vector<std::vector<T>> = true;
template <class T>
constexpr bool is_pairs = false;
template <class T>
constexpr bool is_pairs<std::vector<std::pair<std::string, T>>> = true;
template <class T>
constexpr bool is_array = false;
template <class T, std::size_t n>
constexpr bool is_array<std::array<T, n>> = true;

template <class T>
constexpr ValueKind kind_of() {
  if constexpr (std::is_same_v<T, std::string>)
    return ValueKind::text;
  else if constexpr (std::is_same_v<T, bool>)
    return ValueKind::boolean;
  else if constexpr (Named<T>)
    return ValueKind::choice;
  else if constexpr (std::is_integral_v<T>)
    return ValueKind::whole;
  else if constexpr (std::is_floating_point_v<T>)
    return ValueKind::number;
  else if constexpr (is_pairs<T> || std::is_same_v<T, std::map<std::string, std::string>> ||
                     std::is_same_v<T, model::ModelOverrides>)
    return ValueKind::map;
  else if constexpr (std::is_same_v<T, std::vector<RewardRule>>)
    return ValueKind::rules;
  else if constexpr (std::is_same_v<T, std::vector<engine::data::DataSource>>)
    return ValueKind::sources;
  else if constexpr (std::is_same_v<T, std::vector<engine::generate::BadWord>>)
    return ValueKind::words;
  else if constexpr (std::is_same_v<T, std::vector<engine::generate::SequenceBias>>)
    return ValueKind::biases;
  else if constexpr (is_array<T> || std::is_same_v<T, std::vector<double>> ||
                     std::is_same_v<T, std::vector<std::int32_t>> ||
                     std::is_same_v<T, std::vector<std::int64_t>>)
    return ValueKind::numbers;
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return ValueKind::texts;
  else
    return ValueKind::choices;
}

template <class T>
std::vector<std::string> choices_of() {
  std::vector<std::string> out;
  if constexpr (Named<T>) {
    for (const auto name : names_of(T{})) out.emplace_back(name);
  } else if constexpr (kind_of<T>() == ValueKind::choices) {
    out = choices_of<typename T::value_type>();
  }
  return out;
}

/// A text as it is where YAML reads it back unchanged, otherwise quoted.
std::string yaml_text(const std::string& text);
std::string yaml_text(bool value);
std::string yaml_text(std::int64_t value);
inline std::string yaml_text(int value) {
  return yaml_text(std::int64_t{value});
}
std::string yaml_text(double value);
std::string yaml_text(const std::map<std::string, std::string>& map);
std::string yaml_text(const model::ModelOverrides& overrides);
std::string yaml_text(const RewardRule& rule);
std::string yaml_text(const engine::data::DataSource& source);
std::string yaml_text(const engine::generate::BadWord& word);
std::string yaml_text(const engine::generate::SequenceBias& bias);
template <Named E>
std::string yaml_text(E value) {
  return yaml_text(std::string(name_of(value)));
}
template <class T>
std::string yaml_text(const std::pair<std::string, T>& entry) {
  return cat(yaml_text(entry.first), ": ", yaml_text(entry.second));
}
template <class Items>
requires(is_vector<Items> || is_array<Items>) std::string yaml_text(const Items& items) {
  std::vector<std::string> parts;
  for (const auto& item : items) parts.push_back(yaml_text(item));
  const std::string text = join(parts, ", ");
  return is_pairs<Items> ? cat('{', text, '}') : cat('[', text, ']');
}

/// Unquoted scalars that look like numbers or booleans are read as such, as in JSON.
Json json_of(const YamlNode& node);

/// "WHAT is expected, found ...".
std::string expected(std::string_view what, const YamlNode& node);

/// Names that other programs use for one of ours ("warmup_stable_decay" is wsd).
using Synonyms = std::map<std::string_view, std::string_view>;
template <Named E>
const Synonyms& synonyms_of(E) {
  static const Synonyms none;
  return none;
}
const Synonyms& synonyms_of(engine::data::Layout);
const Synonyms& synonyms_of(engine::optim::ScheduleKind);
const Synonyms& synonyms_of(engine::ops::Precision);
const Synonyms& synonyms_of(engine::nn::Recompute);
const Synonyms& synonyms_of(algorithms::Aggregation);
/// The choice that a word means, or the word in lower case with underscores.
std::string canonical_choice(std::string_view word, const std::vector<std::string>& choices,
                             const Synonyms& synonyms);
/// "" and the index of the choice, or what is wrong.
std::string read_choice(const YamlNode& node, const std::vector<std::string>& choices,
                        const Synonyms& synonyms, std::size_t& index);

std::string read_value(std::string& to, const YamlNode& node);
std::string read_value(bool& to, const YamlNode& node);
std::string read_value(int& to, const YamlNode& node);
std::string read_value(std::int64_t& to, const YamlNode& node);
std::string read_value(double& to, const YamlNode& node);
std::string read_value(std::map<std::string, std::string>& to, const YamlNode& node);
std::string read_value(model::ModelOverrides& to, const YamlNode& node);
std::string read_value(RewardRule& to, const YamlNode& node);
std::string read_value(engine::data::DataSource& to, const YamlNode& node);
std::string read_value(engine::generate::BadWord& to, const YamlNode& node);
std::string read_value(engine::generate::SequenceBias& to, const YamlNode& node);
template <Named E>
std::string read_value(E& to, const YamlNode& node) {
  std::size_t index = 0;
  std::string why = read_choice(node, choices_of<E>(), synonyms_of(E{}), index);
  if (why.empty()) to = static_cast<E>(index);
  return why;
}
/// A map of module names to numbers, in the order of the names.
template <class T>
std::string read_value(std::vector<std::pair<std::string, T>>& to, const YamlNode& node) {
  if (node.kind != YamlNode::Kind::map) return expected("a map", node);
  std::map<std::string, T> entries;
  for (const auto& [name, value] : node.members) {
    if (std::string why = read_value(entries[name], value); !why.empty())
      return cat(name, ": ", why);
  }
  to.assign(entries.begin(), entries.end());
  return "";
}
/// A list, or one value as a list of one.
template <class Item>
std::string read_value(std::vector<Item>& to, const YamlNode& node) {
  const std::vector<YamlNode> one{node};
  std::vector<Item> items;
  for (const YamlNode& each : node.kind == YamlNode::Kind::list ? node.items : one) {
    Item item{};
    if (std::string why = read_value(item, each); !why.empty()) return why;
    items.push_back(std::move(item));
  }
  to = std::move(items);
  return "";
}
template <class Item, std::size_t n>
std::string read_value(std::array<Item, n>& to, const YamlNode& node) {
  std::vector<Item> items;
  if (std::string why = read_value(items, node); !why.empty()) return why;
  if (items.size() != n) return cat("must have ", n, " numbers, has ", items.size());
  std::copy(items.begin(), items.end(), to.begin());
  return "";
}

/// The prefix of one of them, "model_overrides.rope_theta=1000000".
inline constexpr std::string_view override_prefix = "model_overrides.";

/// Adds "KEY=VALUE", with or without the prefix; VALUE is YAML. Errc::usage.
Result<> add_override(model::ModelOverrides& to, const std::string& text);

}  // namespace troupe::launch::config
