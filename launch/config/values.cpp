#include "launch/config/values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/text/parse.h"
#include "engine/base/text/terminal_text.h"

namespace troupe::launch::config {

namespace {

using Kind = YamlNode::Kind;

/// Changes `to` only if the whole text is a number.
template <class Number>
bool read_number(const std::string& text, Number& to) {
  const auto number =
      parse_number<Number>(std::string_view(text).substr(text.starts_with('+') ? 1 : 0));
  if (number) to = *number;
  return number.has_value();
}

template <class Whole>
std::string read_whole(Whole& to, const YamlNode& node) {
  if (node.kind == Kind::scalar && read_number(node.text, to)) return "";
  const bool digits = node.kind == Kind::scalar && !node.text.empty() &&
                      node.text.find_first_not_of("0123456789") == std::string::npos;
  return expected(digits ? cat("a whole number of at most ", std::numeric_limits<Whole>::max())
                         : "a whole number",
                  node);
}

/// "true" for the other ways to write it in Python, YAML 1.1 and shells; "" for another text.
std::string boolean_meant_by(std::string_view word) {
  const std::string text = ascii_lower(word);
  constexpr std::string_view yes[] = {"true", "yes", "on", "1", "y"};
  constexpr std::string_view no[] = {"false", "no", "off", "0", "n"};
  if (std::ranges::find(yes, text) != std::end(yes)) return "true";
  return std::ranges::find(no, text) != std::end(no) ? "false" : "";
}

/// Reads the member `name` of a struct with each_field. False if it has no such field.
template <class S>
bool read_member(S& to, const std::string& name, const YamlNode& node, std::string& why) {
  bool known = false;
  S::each_field(to, [&](std::string_view field, auto& value, const auto&...) {
    if (field != name) return;
    known = true;
    why = read_value(value, node);
  });
  return known;
}

template <class S>
std::string field_names() {
  std::vector<std::string> names;
  const S settings{};
  S::each_field(settings, [&](const char* name, const auto&...) { names.emplace_back(name); });
  const std::string last = names.back();
  names.pop_back();
  return cat(join(names, ", "), " and ", last);
}

}  // namespace

std::string yaml_text(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.' || c == '-';
  };
  static constexpr std::array<std::string_view, 3> reserved{"null", "true", "false"};
  const bool plain = !text.empty() && std::ranges::all_of(text, is_plain) && text[0] != '-' &&
                     std::ranges::find(reserved, text) == reserved.end();
  // What disguises text is written as an escape, which YAML reads back.
  return plain ? text : for_terminal(Json(text).dump());
}
std::string yaml_text(bool value) {
  return value ? "true" : "false";
}
std::string yaml_text(std::int64_t value) {
  return std::to_string(value);
}
std::string yaml_text(double value) {
  return to_text(value);
}
std::string yaml_text(const std::map<std::string, std::string>& map) {
  return yaml_text(std::vector<std::pair<std::string, std::string>>(map.begin(), map.end()));
}

Json json_of(const YamlNode& node) {
  if (node.kind == Kind::null) return {};
  if (node.kind == Kind::list) {
    Json::Array items;
    for (const YamlNode& item : node.items) items.push_back(json_of(item));
    return items;
  }
  if (node.kind == Kind::map) {
    Json members = Json::Object{};
    for (const auto& [name, value] : node.members) members.set(name, json_of(value));
    return members;
  }
  std::int64_t whole = 0;
  double number = 0;
  bool boolean = false;
  if (node.quoted) return node.text;
  if (read_value(boolean, node).empty()) return Json(boolean);
  if (read_number(node.text, whole)) return whole;
  if (read_number(node.text, number)) return number;
  return node.text;
}

std::string yaml_text(const model::ModelOverrides& overrides) {
  std::vector<std::string> members;
  for (const auto& [key, value] : overrides.values.object())
    members.push_back(cat(yaml_text(key), ": ", value.dump()));
  return cat('{', join(members, ", "), '}');
}

std::string yaml_text(const RewardRule& rule) {
  std::string text = cat("{rule: ", yaml_text(rule.rule), ", weight: ", rule.weight);
  if (!rule.label.empty()) text += cat(", label: ", yaml_text(rule.label));
  if (rule.options.is_object())
    for (const auto& [name, value] : rule.options.object())
      text += cat(", ", yaml_text(name), ": ", value.dump());
  return text + "}";
}

std::string yaml_text(const engine::data::DataSource& source) {
  std::string text = cat("{path: ", yaml_text(source.paths), ", weight: ", source.weight);
  if (source.epochs != 0) text += cat(", epochs: ", source.epochs);
  if (source.layout != engine::data::Layout::automatic)
    text += cat(", format: ", yaml_text(source.layout));
  if (!source.columns.empty()) text += cat(", columns: ", yaml_text(source.columns));
  return text + "}";
}

std::string expected(std::string_view what, const YamlNode& node) {
  return cat(what, " is expected, found ",
             node.kind == Kind::scalar ? quote(node.text) : std::string(to_string(node.kind)));
}

const Synonyms& synonyms_of(engine::data::Layout) {
  static const Synonyms table{
      {"sharegpt", "messages"}, {"openai", "messages"}, {"chat", "messages"}};
  return table;
}
const Synonyms& synonyms_of(engine::optim::ScheduleKind) {
  static const Synonyms table{{"inverse_square_root", "inverse_sqrt"},
                              {"inv_sqrt", "inverse_sqrt"},
                              {"constant_with_warmup", "constant"},
                              {"warmup_stable_decay", "wsd"}};
  return table;
}
const Synonyms& synonyms_of(engine::ops::Precision) {
  static const Synonyms table{{"float32", "f32"}, {"fp32", "f32"}, {"bfloat16", "bf16"}};
  return table;
}
const Synonyms& synonyms_of(engine::nn::Recompute) {
  static const Synonyms table{{"selective", "attention"}};
  return table;
}
const Synonyms& synonyms_of(algorithms::Aggregation) {
  static const Synonyms table{{"sequence", "grpo"},    {"seq_mean_token_mean", "grpo"},
                              {"token", "bnpo"},       {"token_mean", "bnpo"},
                              {"constant", "dr_grpo"}, {"seq_mean_token_sum_norm", "dr_grpo"}};
  return table;
}

std::string canonical_choice(std::string_view word, const std::vector<std::string>& choices,
                             const Synonyms& synonyms) {
  std::string text = ascii_lower(word);
  if (std::ranges::find(choices, text) != choices.end()) return text;
  std::ranges::replace(text, '-', '_');
  const auto found = synonyms.find(text);
  return found == synonyms.end() ? text : std::string(found->second);
}

std::string read_choice(const YamlNode& node, const std::vector<std::string>& choices,
                        const Synonyms& synonyms, std::size_t& index) {
  if (node.kind != Kind::scalar) return expected("a word", node);
  const std::string word = canonical_choice(node.text, choices, synonyms);
  const auto found = std::ranges::find(choices, word);
  if (found == choices.end()) {
    std::vector<std::string> named;
    for (const auto& choice : choices)
      if (!choice.empty()) named.push_back(choice);
    const std::string near = nearest(word, named);
    return cat("must be one of ", join(named, ", "), ", found ", quote(node.text),
               near.empty() ? "" : cat("; did you mean ", near, "?"));
  }
  index = static_cast<std::size_t>(found - choices.begin());
  return "";
}

std::string read_value(std::string& to, const YamlNode& node) {
  if (node.kind != Kind::scalar) return expected("a text", node);
  to = node.text;
  return "";
}
std::string read_value(bool& to, const YamlNode& node) {
  const bool scalar = node.kind == Kind::scalar;
  if (!scalar || (node.text != "true" && node.text != "false")) {
    const std::string meant = scalar ? boolean_meant_by(node.text) : "";
    return cat(expected("true or false", node), meant.empty() ? "" : cat("; write ", meant));
  }
  to = node.text == "true";
  return "";
}
std::string read_value(int& to, const YamlNode& node) {
  return read_whole(to, node);
}
std::string read_value(std::int64_t& to, const YamlNode& node) {
  return read_whole(to, node);
}
std::string read_value(double& to, const YamlNode& node) {
  double number = 0;
  if (node.kind != Kind::scalar || !read_number(node.text, number))
    return expected("a number", node);
  if (!std::isfinite(number)) return expected("a finite number", node);
  to = number;
  return "";
}

std::string read_value(std::map<std::string, std::string>& to, const YamlNode& node) {
  std::vector<std::pair<std::string, std::string>> entries;
  if (std::string why = read_value(entries, node); !why.empty()) return why;
  to = {entries.begin(), entries.end()};
  return "";
}

std::string read_value(model::ModelOverrides& to, const YamlNode& node) {
  if (node.kind != Kind::map) return expected("a map of keys of config.json", node);
  to.values = json_of(node);
  return "";
}

std::string read_value(RewardRule& to, const YamlNode& node) {
  if (node.kind == Kind::scalar) return read_value(to.rule, node);
  if (node.kind != Kind::map) return expected("a rule's name or a map with the key rule", node);
  for (const auto& [name, value] : node.members) {
    std::string why;
    if (!read_member(to, name, value, why)) {
      const std::string meant = nearest(name, {"rule", "weight", "label"});
      if (!meant.empty()) return cat("unknown key ", quote(name), "; did you mean ", meant, "?");
      to.options.set(name, json_of(value));
    }
    if (!why.empty()) return cat(name, ": ", why);
  }
  if (to.rule.empty()) return "a rule needs the key rule, its name, such as {rule: exact_match}";
  return "";
}

std::string read_value(engine::data::DataSource& to, const YamlNode& node) {
  if (node.kind != Kind::map)
    return expected(cat("a map of ", field_names<engine::data::DataSource>()), node);
  for (const auto& [name, value] : node.members) {
    std::string why;
    if (!read_member(to, name, value, why))
      why = cat("unknown; ", field_names<engine::data::DataSource>(), " are known");
    if (!why.empty()) return cat(name, ": ", why);
  }
  if (to.paths.empty()) return "a source needs the key path";
  if (!(to.weight > 0)) return cat("weight: must be above 0, found ", to.weight);
  if (!contains(passes_from_0, static_cast<double>(to.epochs)))
    return cat("epochs: must be ", range_text(passes_from_0), ", found ", to.epochs);
  return "";
}

std::string yaml_text(const engine::generate::BadWord& word) {
  return word.text.empty() ? yaml_text(word.ids) : yaml_text(word.text);
}

std::string yaml_text(const engine::generate::SequenceBias& bias) {
  return cat('[', yaml_text(bias.ids), ", ", yaml_text(bias.bias), ']');
}

std::string read_value(engine::generate::BadWord& to, const YamlNode& node) {
  if (node.kind == Kind::list) return read_value(to.ids, node);
  if (node.kind != Kind::scalar || !json_of(node).is_string())
    return expected("a text, or a list of token ids,", node);
  to.text = node.text;
  return "";
}

std::string read_value(engine::generate::SequenceBias& to, const YamlNode& node) {
  if (node.kind != Kind::list || node.items.size() != 2 || node.items[0].kind != Kind::list)
    return expected("a pair of token ids and a bias, [[1, 2], -5],", node);
  std::string why = read_value(to.ids, node.items[0]);
  return why.empty() ? read_value(to.bias, node.items[1]) : why;
}

Result<> add_override(model::ModelOverrides& to, const std::string& text) {
  const std::string pair =
      text.starts_with(override_prefix) ? text.substr(override_prefix.size()) : text;
  const auto equals = pair.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(Errc::usage, cat(quote(text),
                                 ": expected KEY=VALUE, such as rope_theta=1000000 or "
                                 "rope_scaling='{rope_type: yarn, factor: 4}'"));
  const auto value = parse_yaml(pair.substr(equals + 1), text);
  RETURN_IF_ERROR(value);
  to.values.set(pair.substr(0, equals), json_of(*value));
  return {};
}

}  // namespace troupe::launch::config
