#include "launch/config/assign.h"

#include <charconv>
#include <cmath>

#include "engine/base/text.h"

namespace troupe::launch {

namespace {

using Kind = YamlNode::Kind;

// `to` changes only with a number that is one to its end: what is refused is not judged as well.
template <class Number>
bool read_number(const std::string& text, Number& to) {
  Number number{};
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, code] = std::from_chars(begin, text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return false;
  to = number;
  return true;
}

std::string expected(std::string_view what, const YamlNode& node) {
  return cat(what, " is expected, found ",
             node.kind == Kind::scalar ? quote(node.text) : std::string(to_string(node.kind)));
}

std::string store(std::string* to, const YamlNode& node) {
  if (node.kind != Kind::scalar) return expected("a text", node);
  *to = node.text;
  return "";
}
std::string store(std::int64_t* to, const YamlNode& node) {
  if (node.kind != Kind::scalar || !read_number(node.text, *to))
    return expected("a whole number", node);
  return "";
}
std::string store(double* to, const YamlNode& node) {
  double number = 0;
  if (node.kind != Kind::scalar || !read_number(node.text, number))
    return expected("a number", node);
  if (!std::isfinite(number)) return expected("a finite number", node);
  *to = number;
  return "";
}
std::string store(bool* to, const YamlNode& node) {
  if (node.kind != Kind::scalar || (node.text != "true" && node.text != "false"))
    return expected("true or false", node);
  *to = node.text == "true";
  return "";
}

// A scalar as JSON would have it: what is not quoted and looks like a number or a truth value is
// one.
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
  if (node.quoted) return node.text;
  if (node.text == "true" || node.text == "false") return Json(node.text == "true");
  if (read_number(node.text, whole)) return whole;
  if (read_number(node.text, number)) return number;
  return node.text;
}

std::string store(RewardRule* to, const YamlNode& node) {
  if (node.kind == Kind::scalar) return store(&to->rule, node);
  if (node.kind != Kind::map) return expected("a rule's name or a map with the key rule", node);
  for (const auto& [name, value] : node.members) {
    std::string why;
    if (name == "rule")
      why = store(&to->rule, value);
    else if (name == "weight")
      why = store(&to->weight, value);
    else if (name == "label")
      why = store(&to->label, value);
    else
      to->options.set(name, json_of(value));
    if (!why.empty()) return cat(name, ": ", why);
  }
  if (to->rule.empty())
    return "a rule needs the key rule (exact_match, gsm8k, boxed, format, regex, length or "
           "command)";
  return "";
}

std::string store(MixSource* to, const YamlNode& node);

/// A list, or one value standing for a list of one.
template <class Item>
std::string store(std::vector<Item>* to, const YamlNode& node) {
  std::vector<Item> items;
  const std::vector<YamlNode> one =
      node.kind == Kind::list ? std::vector<YamlNode>{} : std::vector<YamlNode>{node};
  for (const YamlNode& each : node.kind == Kind::list ? node.items : one) {
    Item item{};
    if (std::string why = store(&item, each); !why.empty()) return why;
    items.push_back(std::move(item));
  }
  *to = std::move(items);
  return "";
}

std::string store(std::map<std::string, std::string>* to, const YamlNode& node) {
  if (node.kind != Kind::map) return expected("a map", node);
  to->clear();
  for (const auto& [name, value] : node.members) {
    if (std::string why = store(&(*to)[name], value); !why.empty()) return cat(name, ": ", why);
  }
  return "";
}

std::string store(MixSource* to, const YamlNode& node) {
  if (node.kind != Kind::map)
    return expected("a map of path, weight, epochs, format and columns", node);
  for (const auto& [name, value] : node.members) {
    std::string why;
    if (name == "path")
      why = store(&to->path, value);
    else if (name == "weight")
      why = store(&to->weight, value);
    else if (name == "epochs")
      why = store(&to->epochs, value);
    else if (name == "format")
      why = store(&to->format, value),
      to->format = canonical_choice(*find_field("data.format"), to->format);
    else if (name == "columns")
      why = store(&to->columns, value);
    else
      why = "unknown; path, weight, epochs, format and columns are known";
    if (!why.empty()) return cat(name, ": ", why);
  }
  if (to->path.empty()) return "a source needs the key path";
  if (!(to->weight > 0)) return cat("weight: must be above 0, found ", to->weight);
  if (to->epochs < 0) return cat("epochs: must be at least 0, found ", to->epochs);
  return "";
}

}  // namespace

std::string assign(const Field& field, const YamlNode& node, RunConfig& config) {
  if (node.kind == Kind::null) return "";
  std::string why = std::visit([&](auto* to) { return store(to, node); }, field.slot(config));
  if (why.empty() && !field.choices.empty()) {
    const Slot slot = field.slot(config);
    if (auto* word = std::get_if<std::string*>(&slot)) **word = canonical_choice(field, **word);
    if (auto* words = std::get_if<std::vector<std::string>*>(&slot))
      for (auto& word : **words) word = canonical_choice(field, word);
  }
  return why;
}

}  // namespace troupe::launch
