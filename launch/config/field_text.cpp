// What a field is, in words: types, allowed values, values as YAML text, and which key a misspelt
// one meant.
#include <algorithm>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "launch/config/fields.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch {

namespace {

template <class... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overload(Fs...) -> Overload<Fs...>;

/// A word stands as it is where YAML reads it back as the same text, otherwise in JSON's quotes.
std::string yaml_text(const std::string& text) {
  bool plain = !text.empty();
  for (char c : text)
    plain = plain && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '/' || c == '.' || c == '-');
  plain = plain && text[0] != '-' && text != "null" && text != "true" && text != "false";
  return plain ? text : Json(text).dump();
}

template <class Items, class Text>
std::string listed(const Items& items, Text text) {
  std::vector<std::string> parts;
  for (const auto& item : items) parts.push_back(text(item));
  return cat('[', join(parts, ", "), ']');
}

std::string rule_text(const RewardRule& rule) {
  std::string text = cat("{rule: ", yaml_text(rule.rule), ", weight: ", rule.weight);
  if (!rule.label.empty()) text += cat(", label: ", yaml_text(rule.label));
  if (rule.options.is_object())
    for (const auto& [name, value] : rule.options.object())
      text += cat(", ", yaml_text(name), ": ", value.dump());
  return text + "}";
}

std::string columns_text(const std::map<std::string, std::string>& columns) {
  std::vector<std::string> parts;
  for (const auto& [ours, theirs] : columns)
    parts.push_back(cat(yaml_text(ours), ": ", yaml_text(theirs)));
  return cat('{', join(parts, ", "), '}');
}

std::string source_text(const MixSource& source) {
  std::string text = cat("{path: ", listed(source.path, yaml_text), ", weight: ", source.weight);
  if (source.epochs != 0) text += cat(", epochs: ", source.epochs);
  if (source.format != "auto") text += cat(", format: ", yaml_text(source.format));
  if (!source.columns.empty()) text += cat(", columns: ", columns_text(source.columns));
  return text + "}";
}

std::string_view last_part(std::string_view key) {
  const auto dot = key.rfind('.');
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

}  // namespace

std::string_view section_of(std::string_view key) {
  const auto dot = key.find('.');
  return dot == std::string_view::npos ? std::string_view{} : key.substr(0, dot);
}

std::string_view part_of(const Field& field) {
  const std::string_view section = section_of(field.key);
  return section.empty() ? field.key : section;
}

const Field* find_field(std::string_view key) {
  for (const Field& field : fields()) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

std::string nearest_key(std::string_view key) {
  std::vector<std::string> keys, last_parts;
  for (const Field& field : fields()) {
    keys.emplace_back(field.key);
    last_parts.emplace_back(last_part(field.key));
  }
  for (const Field& field : fields()) {
    if (last_part(field.key) == last_part(key)) return std::string(field.key);
  }
  if (std::string found = nearest(key, keys); !found.empty()) return found;
  const std::string part = nearest(last_part(key), last_parts);
  for (const Field& field : fields()) {
    if (!part.empty() && last_part(field.key) == part) return std::string(field.key);
  }
  return "";
}

std::string canonical_choice(const Field& field, std::string_view word) {
  std::string text(word);
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (cat("|", field.choices, "|").find(cat("|", text, "|")) != std::string::npos) return text;
  std::ranges::replace(text, '-', '_');
  if (field.key == "data.format" && (text == "sharegpt" || text == "openai" || text == "chat"))
    return "messages";
  if (field.key == "train.schedule") {
    if (text == "inverse_square_root" || text == "inv_sqrt") return "inverse_sqrt";
    if (text == "constant_with_warmup") return "constant";
    if (text == "warmup_stable_decay") return "wsd";
  }
  if (field.key == "grpo.aggregation") {
    if (text == "sequence" || text == "seq_mean_token_mean") return "grpo";
    if (text == "token" || text == "token_mean") return "bnpo";
    if (text == "constant" || text == "seq_mean_token_sum_norm") return "dr_grpo";
  }
  if (field.key == "train.recompute" && text == "selective") return "attention";
  if (field.key == "train.dtype") {
    if (text == "float32" || text == "fp32") return "f32";
    if (text == "bfloat16") return "bf16";
  }
  return text;
}

std::string value_text(const Field& field, const RunConfig& config) {
  RunConfig copy = config;  // slots are for writing; a copy keeps the caller's const
  return std::visit(
      Overload{
          [](std::string* v) { return yaml_text(*v); },
          [](std::int64_t* v) { return std::to_string(*v); },
          [](double* v) { return to_text(*v); },
          [](bool* v) { return std::string(*v ? "true" : "false"); },
          [](std::vector<std::string>* v) { return listed(*v, yaml_text); },
          [](std::vector<double>* v) { return listed(*v, [](double x) { return to_text(x); }); },
          [](std::map<std::string, std::string>* v) { return columns_text(*v); },
          [](std::vector<RewardRule>* v) { return listed(*v, rule_text); },
          [](std::vector<MixSource>* v) { return listed(*v, source_text); },
      },
      field.slot(copy));
}

std::string_view type_name(const Field& field) {
  RunConfig config;
  if (!field.choices.empty())
    return std::holds_alternative<std::string*>(field.slot(config)) ? "word" : "list of words";
  static constexpr std::string_view names[] = {"text",          "whole number",  "number",
                                               "true or false", "list of texts", "list of numbers",
                                               "map",           "list of rules", "list of sources"};
  return names[field.slot(config).index()];
}

std::string allowed_text(const Field& field) {
  if (!field.choices.empty()) {
    std::string text;
    for (char c : field.choices) text += c == '|' ? std::string(", ") : std::string(1, c);
    return text;
  }
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::vector<std::string> parts;
  if (field.range.low > -inf)
    parts.push_back(cat(field.range.above_low ? "above " : "at least ", to_text(field.range.low)));
  if (field.range.high < inf) {
    const double high = field.range.high;
    parts.push_back(cat(field.range.below_high ? "below " : "at most ",
                        high > 1000 ? to_text(high, 0) : to_text(high)));
  }
  return join(parts, ", ");
}

bool applies(const Field& field, std::string_view algorithm) {
  const auto is = [&](const Recipe& recipe) {
    return std::ranges::find(recipe.sections, part_of(field)) != recipe.sections.end();
  };
  if (std::ranges::none_of(recipes(), is)) return true;
  const Recipe* recipe = find_recipe(algorithm);
  return recipe && is(*recipe);
}

}  // namespace troupe::launch
