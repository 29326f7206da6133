#include "launch/tools/migration/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch::tools::migration {
namespace {

/// "3" for "3.0" where a whole number is expected.
std::string whole_text(const config::Field& field, const std::string& text) {
  const auto number = parse_number<double>(text);
  const bool whole = number && *number == std::floor(*number) && std::abs(*number) < 1e15;
  return whole && field.kind == config::ValueKind::whole ? to_text(*number, 0) : text;
}

std::string refusal(const std::string& key, const config::YamlNode& value) {
  const config::Field* field = config::find_field(key);
  if (!field)
    return key.starts_with("data.columns.") || key.starts_with("data.tags.")
               ? ""
               : cat("there is no key ", key);
  config::RunConfig scratch;
  std::string why = config::assign(*field, value, scratch);
  config::each_number_out_of_range(scratch, [&](const config::Field& wrong, double, bool) {
    if (wrong.key == key && why.empty()) why = cat("must be ", config::allowed_text(wrong));
  });
  return why;
}

/// A number as YAML 1.1 and Python write it (+1e-5, 1_000), without the sign and the underscores.
std::string plain_number(std::string text) {
  const auto digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != '_' || i == 0 || !digit(i - 1) || !digit(i + 1)) out += text[i];
  const bool sign = out.size() > 1 && out[0] == '+' && (digit(1) || out[1] == '.');
  if (sign) out.erase(0, 1);
  return parse_number<double>(out) ? out : text;
}

bool is_number(const config::Field* field) {
  return field &&
         (field->kind == config::ValueKind::whole || field->kind == config::ValueKind::number);
}

/// True for a setting of this name, or of it in a section.
bool is_name_of(const ForeignSetting& setting, std::string_view name) {
  const std::string key = tables::normal_name(setting.key);
  return key == name || key.ends_with(cat('.', name));
}

/// A number, or a word: not another way of writing several numbers, which a tool may have.
bool means_no_number(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number = code != std::errc::invalid_argument && end == text.data() + text.size();
  return number || text.find_first_of("_,;:[]{}() ") == text.npos;
}

}  // namespace

config::YamlNode node_of_value(std::string_view text) {
  if (text.starts_with('[') || text.starts_with('{'))
    if (auto parsed = config::parse_yaml(text, "a value")) return *parsed;
  return scalar_node(text);
}

std::string yaml_of(const config::YamlNode& value) {
  if (value.kind == config::YamlNode::Kind::scalar) return config::yaml_text(text_of(value));
  std::vector<std::string> items;
  for (const config::YamlNode& item : value.items) items.push_back(yaml_of(item));
  for (const auto& [name, member] : value.members)
    items.push_back(cat(config::yaml_text(name), ": ", yaml_of(member)));
  const bool map = value.kind == config::YamlNode::Kind::map;
  return cat(map ? '{' : '[', join(items, ", "), map ? '}' : ']');
}

ImportSettings::ImportSettings(tables::Tool of, const ForeignRun& from) : tool(of), run(from) {
  // A name that means the same setting counts, but not one that only has the same answer.
  for (const ForeignSetting& each : run.settings)
    for (const tables::ToolKey* row : rows_of(tool, each.key))
      for (const std::string_view name : row->names)
        if (row->equivalent == tables::Equivalent::setting || is_name_of(each, name))
          by_name_[name].push_back(&each);
}

void ImportSettings::begin(const std::string& algorithm, const std::string& recipe_name) {
  converted.algorithm = algorithm;
  recipe = recipe_name;
}

bool ImportSettings::given(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found != by_name_.end() &&
         std::ranges::any_of(found->second, [](const ForeignSetting* each) {
           return !text_of(each->value).empty();
         });
}

std::string ImportSettings::theirs(std::string_view name, const std::string& otherwise) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return otherwise;
  const auto& all = found->second;
  const auto own = std::find_if(all.rbegin(), all.rend(), [&](const ForeignSetting* each) {
    return is_name_of(*each, name);
  });
  const ForeignSetting& last = own == all.rend() ? *all.back() : **own;
  if (last.unknown.empty()) return text_of(last.value);
  missing_ = cat(last.key, " depends on ", last.unknown);
  return otherwise;
}

double ImportSettings::number(std::string_view name, double otherwise) const {
  std::string text = theirs(name, "");
  if (text.empty() || text == "null" || text == "none" || text == "auto") return otherwise;
  const auto value = parse_number<double>(plain_number(std::move(text)));
  if (value && std::isfinite(*value)) return *value;
  throw Failure(
      {Errc::usage, cat(name, " ", quote(theirs(name, ""), 200),
                        ": a finite number is expected; correct the file, or give another "
                        "value after it (NAME=VALUE)")});
}

std::vector<std::string> ImportSettings::targets(const tables::ToolKey& row) const {
  std::vector<std::string> own, all;
  for (const tables::Target& target : row.targets) {
    const std::string key(target.key.starts_with("data.columns.") ? "data.columns" : target.key);
    const config::Field* field = config::find_field(key);
    if (key != "algorithm" && key != config::column_maps_key &&
        (!field || !recipes::reads(converted.algorithm, *field)))
      continue;
    if (target.algorithm.empty())
      all.emplace_back(target.key);
    else if (target.algorithm == converted.algorithm)
      own.emplace_back(target.key);
  }
  return own.empty() ? all : own;
}

bool ImportSettings::has(std::string_view key) const {
  return converted.values.contains(std::string(key));
}

std::string ImportSettings::put(const std::string& key, std::string_view value) {
  const config::Field* field = config::find_field(key);
  config::YamlNode node = node_of_value(value);
  if (is_number(field) && node.kind == config::YamlNode::Kind::scalar)
    node.text = whole_text(*field, plain_number(node.text));
  std::string why = refusal(key, node);
  if (!why.empty()) return why;
  // A number or a word needs no quotes, and a text of digits none that matter.
  const bool text =
      !field || field->kind == config::ValueKind::text || field->kind == config::ValueKind::texts;
  converted.values[key] = {
      text || node.kind != config::YamlNode::Kind::scalar ? yaml_of(node) : node.text, current};
  return "";
}

void ImportSettings::set(const std::string& key, const config::YamlNode& value) {
  const std::string text =
      value.kind == config::YamlNode::Kind::scalar ? text_of(value) : yaml_of(value);
  const std::string why = put(key, text);
  const config::Field* field = config::find_field(key);
  const bool number = is_number(field) || (field && field->kind == config::ValueKind::numbers);
  if (why.empty())
    line(Outcome::became, cat(key, ": ", converted.values[key].yaml));
  else if (number && value.kind == config::YamlNode::Kind::scalar && means_no_number(text))
    refuse(key, why);
  else
    line(number ? Outcome::unusable : Outcome::no_equivalent, cat(key, ": ", why));
}

void ImportSettings::require(const std::string& key, std::string_view value) {
  if (const std::string why = put(key, value); !why.empty()) refuse(key, why);
}

void ImportSettings::refuse(const std::string& key, const std::string& why) const {
  throw Failure({Errc::usage, cat(current, " is no value for ", key, ": ", why,
                                  "; correct the file, or give another value after it "
                                  "(NAME=VALUE)")});
}

void ImportSettings::line(Outcome outcome, std::string_view text) {
  converted.lines.push_back({outcome, current, std::string(text)});
}

void ImportSettings::attempt(const std::function<void()>& conversion) {
  missing_.clear();
  const auto values = converted.values;
  const std::size_t lines = converted.lines.size(), notes = converted.notes.size();
  conversion();
  if (missing_.empty()) return;
  converted.values = values;
  converted.lines.resize(lines);
  converted.notes.resize(notes);
  line(Outcome::not_evaluated, missing_);
}

void ImportSettings::note(std::string text) {
  converted.notes.push_back(std::move(text));
}

}  // namespace troupe::launch::tools::migration
