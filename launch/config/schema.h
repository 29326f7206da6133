// Schema: all configuration keys, listed from the structs of RunConfig. YAML files, --set, explain,
// spelling suggestions and docs/configuration.md use this list.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/config/run_config.h"
#include "launch/config/values.h"

namespace troupe::launch::config {

struct Field {
  std::string key;  ///< "train.learning_rate"
  std::string_view doc;
  Range range;
  ValueKind kind = ValueKind::text;
  std::vector<std::string> choices;  ///< of a choice or a list of choices
  std::string default_text;          ///< as YAML
};

/// All keys, section by section, in the order of the reference page.
std::span<const Field> fields();
/// The field with this key, or nullptr.
const Field* find_field(std::string_view key);
/// True for "train", which has keys of its own.
bool is_section(std::string_view key);
/// The field whose key ends in ".name", if it is the only one among those that `is_meant` accepts;
/// otherwise nullptr.
const Field* only_key_called(std::string_view name,
                             const std::function<bool(const Field&)>& is_meant);
/// The known key that `key` most likely means ("learning_rate" means "train.learning_rate"), or "".
std::string nearest_key(std::string_view key);
/// The key with one letter more, less or replaced, or two neighbours swapped; or "".
std::string key_within_one_edit(std::string_view key);

/// Stores `node` as the field's value; a null leaves the default. Returns "" or what is wrong ("a
/// whole number is expected, found \"many\"").
std::string assign(const Field& field, const YamlNode& node, RunConfig& config);
/// The value as YAML.
std::string value_text(const Field& field, const RunConfig& config);
/// Calls `report` for each number that is outside its field's range. `whole`: an integer.
using ReportNumber = std::function<void(const Field& field, double value, bool whole)>;
void each_number_out_of_range(const RunConfig& config, const ReportNumber& report);

/// The range or the choices in words ("above 0, at most 1"); empty if every value is allowed.
std::string allowed_text(const Field& field);
/// "train" for "train.steps", "" for "model".
std::string_view section_of(std::string_view key);
/// The section of a field, or its key if it has none: the names in Recipe::sections.
std::string_view part_of(const Field& field);

}  // namespace troupe::launch::config
