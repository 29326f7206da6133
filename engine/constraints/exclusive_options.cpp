#include "engine/constraints/exclusive_options.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/base/text/text.h"
#include "engine/constraints/json_schema_types.h"

namespace troupe::engine::constraints {

namespace {

constexpr std::array kinds = {JsonType::null,   JsonType::boolean, JsonType::number,
                              JsonType::string, JsonType::array,   JsonType::object};

/// The values of `const` or `enum`; empty: none.
std::span<const Json> constants_of(const Json& schema) {
  if (const Json* value = schema.find("const")) return {value, 1};
  const Json* values = schema.find("enum");
  return values != nullptr && values->is_array() ? std::span<const Json>(values->array())
                                                 : std::span<const Json>();
}

JsonTypes types_of_option(const Json& option) {
  JsonTypes types;
  if (!option.is_object()) return JsonTypes::all();
  for (const Json& value : constants_of(option)) types.add(json_type_of(value));
  if (types.empty()) types = types_of(option, SchemaPath("oneOf"));
  return types.empty() ? JsonTypes::all() : types;
}

/// The options that have a constant, by its key: an option with none, or two options with the same,
/// end it.
class ConstantsOfOptions {
 public:
  explicit ConstantsOfOptions(const Grammar& grammar) : grammar_(grammar) {}

  /// Two options that an instance could satisfy; nothing: none.
  using Pair = std::optional<std::pair<std::size_t, std::size_t>>;
  static Pair ordered(std::size_t a, std::size_t b) {
    return std::pair(std::min(a, b), std::max(a, b));
  }

  template <class SchemaOf>
  Pair overlap(std::span<const std::size_t> options, SchemaOf schema_of) {
    std::unordered_map<std::string, std::size_t> owners;
    for (const std::size_t option : options) {
      const Json* schema = schema_of(option);
      const auto values = schema == nullptr ? std::span<const Json>() : constants_of(*schema);
      if (values.empty()) return ordered(options[options[0] == option ? 1 : 0], option);
      for (const Json& value : values) {
        std::string key = canonical_text(value);
        grammar_.spend(1 + key.size() / 8);
        const auto [found, is_new] = owners.try_emplace(std::move(key), option);
        if (!is_new && found->second != option) return ordered(found->second, option);
      }
    }
    return std::nullopt;
  }

 private:
  const Grammar& grammar_;
};

using Pair = ConstantsOfOptions::Pair;

/// Names that all of these options require and describe.
std::vector<std::string_view> common_names(std::span<const Json* const> all,
                                           std::span<const std::size_t> options,
                                           const Grammar& grammar) {
  std::unordered_map<std::string_view, std::size_t> counts;
  for (const std::size_t option : options) {
    const Json* required = all[option]->find("required");
    if (required == nullptr || !required->is_array()) return {};
    std::unordered_set<std::string_view> own;
    for (const Json& name : required->array())
      if (name.is_string() && own.insert(name.string()).second) ++counts[name.string()];
    grammar.spend(1 + required->array().size());
  }
  std::vector<std::string_view> out;
  const Json* required = all[options[0]]->find("required");
  for (const Json& name : required->array()) {
    if (!name.is_string()) continue;
    const auto found = counts.find(name.string());
    if (found == counts.end() || found->second != options.size()) continue;
    out.push_back(found->first);
    counts.erase(found);
  }
  return out;
}

/// Nothing when constants of a required property distinguish the objects of these options.
Pair overlap_of_objects(std::span<const Json* const> all, std::span<const std::size_t> options,
                        const Grammar& grammar) {
  const Pair first_two = std::pair(options[0], options[1]);
  for (const std::size_t option : options)
    if (!all[option]->is_object()) return first_two;
  constexpr std::size_t max_names = 64;
  std::size_t tried = 0;
  for (const std::string_view name : common_names(all, options, grammar)) {
    if (++tried > max_names) break;
    const auto schema_of = [&](std::size_t option) -> const Json* {
      const Json* properties = all[option]->find("properties");
      grammar.spend(
          properties == nullptr || !properties->is_object() ? 1 : 1 + properties->object().size());
      return properties == nullptr ? nullptr : properties->find(name);
    };
    if (!ConstantsOfOptions(grammar).overlap(options, schema_of)) return std::nullopt;
  }
  return first_two;
}

Pair overlap_of(std::span<const Json* const> all, const Grammar& grammar) {
  std::array<std::vector<std::size_t>, kinds.size()> by_kind;
  for (std::size_t i = 0; i < all.size(); ++i) {
    JsonTypes types = types_of_option(*all[i]);
    if (types.has(JsonType::integer)) types.add(JsonType::number);
    for (std::size_t k = 0; k < kinds.size(); ++k)
      if (types.has(kinds[k])) by_kind[k].push_back(i);
  }
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const auto& options = by_kind[k];
    if (options.size() < 2) continue;
    Pair found =
        ConstantsOfOptions(grammar).overlap(options, [&](std::size_t i) { return all[i]; });
    if (found && kinds[k] == JsonType::object) found = overlap_of_objects(all, options, grammar);
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<OptionPair> find_overlap(std::span<const Json* const> options,
                                       const Grammar& grammar) {
  return overlap_of(options, grammar);
}

void refuse_overlap(OptionPair options, const SchemaPath& where) {
  schema_unsupported(where, cat("oneOf: an instance could satisfy both option ", options.first,
                                " and option ", options.second,
                                "; give them different types or a required property with "
                                "different constants, or use anyOf"));
}

}  // namespace troupe::engine::constraints
