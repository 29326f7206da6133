#include "launch/config/schema.h"

#include <type_traits>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::launch::config {

namespace {

/// Receives the fields of one section. Members without a description are not settings.
template <class Visit>
struct SectionVisitor {
  std::string_view section;
  Visit& visit;

  void operator()(std::string_view, auto&) const {}
  void operator()(std::string_view, auto&, const Range&) const {}
  void operator()(std::string_view name, auto& value, const char* doc) const {
    (*this)(name, value, Range{}, doc);
  }
  void operator()(std::string_view name, auto& value, const Range& range, const char* doc) const {
    visit(section.empty() ? std::string(name) : cat(section, '.', name), value, range, doc);
  }
};

/// Calls visit(key, value, range, doc) for every setting. Every visit has the same order.
template <class Config, class Visit>
void each_setting(Config& config, Visit visit) {
  RunConfig::each_field(config, SectionVisitor<Visit>{"", visit});
  RunConfig::each_section(config, [&](std::string_view name, auto& section, auto... doc) {
    using Section = std::remove_cvref_t<decltype(section)>;
    if constexpr (sizeof...(doc) > 0)
      SectionVisitor<Visit>{"", visit}(name, section, doc...);
    else
      Section::each_field(section, SectionVisitor<Visit>{name, visit});
  });
}

std::vector<Field> all_fields() {
  std::vector<Field> all;
  const RunConfig defaults;
  each_setting(
      defaults, [&](std::string key, const auto& value, const Range& range, const char* doc) {
        using Value = std::remove_cvref_t<decltype(value)>;
        all.push_back(
            {std::move(key), doc, range, kind_of<Value>(), choices_of<Value>(), yaml_text(value)});
      });
  return all;
}

std::string_view last_part(std::string_view key) {
  const auto dot = key.rfind('.');
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

/// "train.batch_size" for "train.batch": an abbreviation of at least three letters, or "".
std::string shortest_beginning_with(std::string_view key) {
  std::string found;
  if (last_part(key).size() < 3) return found;
  for (const Field& field : fields())
    if (field.key.starts_with(key) && (found.empty() || field.key.size() < found.size()))
      found = field.key;
  return found;
}

bool is_one_edit(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty() && a.front() == b.front()) {
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    a.remove_suffix(1);
    b.remove_suffix(1);
  }
  const bool swapped = a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0];
  return swapped || (a.size() <= 1 && b.size() <= 1);
}

}  // namespace

std::span<const Field> fields() {
  static const std::vector<Field> all = all_fields();
  return all;
}

const Field* find_field(std::string_view key) {
  for (const Field& field : fields()) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

bool is_section(std::string_view key) {
  for (const Field& field : fields()) {
    if (field.key.size() > key.size() && field.key.starts_with(key) && field.key[key.size()] == '.')
      return true;
  }
  return false;
}

const Field* only_key_called(std::string_view name,
                             const std::function<bool(const Field&)>& is_meant) {
  const Field* only = nullptr;
  for (const Field& field : fields()) {
    if (section_of(field.key).empty() || last_part(field.key) != name || !is_meant(field)) continue;
    if (only) return nullptr;
    only = &field;
  }
  return only;
}

std::string key_within_one_edit(std::string_view key) {
  for (const Field& field : fields())
    if (is_one_edit(key, field.key)) return field.key;
  return "";
}

std::string nearest_key(std::string_view key) {
  std::vector<std::string> keys, last_parts;
  for (const Field& field : fields()) {
    keys.emplace_back(field.key);
    last_parts.emplace_back(last_part(field.key));
  }
  for (const Field& field : fields()) {
    if (last_part(field.key) == last_part(key)) return field.key;
  }
  if (std::string found = shortest_beginning_with(key); !found.empty()) return found;
  const std::string section(key.substr(0, key.size() - last_part(key).size()));
  for (const Field& field : fields())  // "train.num_epochs" means "train.epochs"
    if (field.key == cat(section, last_part(field.key)) &&
        last_part(key).ends_with(cat('_', last_part(field.key))))
      return field.key;
  if (std::string found = nearest(key, keys); !found.empty()) return found;
  const std::string part = nearest(last_part(key), last_parts);
  for (const Field& field : fields()) {
    if (!part.empty() && last_part(field.key) == part) return field.key;
  }
  return "";
}

std::string assign(const Field& field, const YamlNode& node, RunConfig& config) {
  if (node.kind == YamlNode::Kind::null) return "";
  std::string why;
  each_setting(config, [&](const std::string& key, auto& value, const Range&, const char*) {
    if (key == field.key) why = read_value(value, node);
  });
  return why;
}

std::string value_text(const Field& field, const RunConfig& config) {
  std::string text;
  each_setting(config, [&](const std::string& key, const auto& value, const Range&, const char*) {
    if (key == field.key) text = yaml_text(value);
  });
  return text;
}

void each_number_out_of_range(const RunConfig& config, const ReportNumber& report) {
  each_setting(config,
               [&](const std::string& key, const auto& value, const Range& range, const char*) {
                 each_number(value, [&](double each, bool whole) {
                   if (!contains(range, each)) report(*find_field(key), each, whole);
                 });
               });
}

std::string allowed_text(const Field& field) {
  std::vector<std::string> parts;
  if (!field.choices.empty()) {
    for (const auto& choice : field.choices)
      if (!choice.empty()) parts.push_back(choice);
    return join(parts, ", ");
  }
  return range_text(field.range);
}

std::string_view section_of(std::string_view key) {
  const auto dot = key.find('.');
  return dot == std::string_view::npos ? std::string_view{} : key.substr(0, dot);
}

std::string_view part_of(const Field& field) {
  const std::string_view section = section_of(field.key);
  return section.empty() ? std::string_view(field.key) : section;
}

}  // namespace troupe::launch::config
