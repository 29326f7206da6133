// The configuration as text: a YAML file, and the reference page of all keys.
#include "engine/base/text.h"
#include "launch/config/fields.h"
#include "launch/config/resolve.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch {

namespace {

// A table's cell: a bar inside it would begin the next one.
std::string code(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out.empty() ? out : cat('`', out, '`');
}

std::string row(const Field& field) {
  const RunConfig defaults;
  std::string type(type_name(field));
  const std::string allowed = field.choices.empty() ? allowed_text(field) : "";
  if (!field.choices.empty()) type = allowed_text(field);
  return cat("| `", field.key, "` | ", type, allowed.empty() ? "" : ", ", allowed, " | ",
             code(value_text(field, defaults)), " | ", field.doc, " |\n");
}

}  // namespace

std::string to_yaml(const RunConfig& config) {
  std::string text, section;
  for (const Field& field : fields()) {
    const std::string_view of = section_of(field.key);
    if (of != section) {
      section = of;
      if (!section.empty()) text += cat(section, ":\n");
    }
    const std::string_view name =
        section.empty() ? field.key : field.key.substr(section.size() + 1);
    text += cat(section.empty() ? "" : "  ", name, ": ", value_text(field, config), "\n");
  }
  return text;
}

namespace {

/// "reward" is read by some algorithms only, "model" by all.
std::string heading(const Field& field) {
  std::vector<std::string> readers;
  for (const std::string& name : algorithm_names())
    if (applies(field, name)) readers.push_back(name);
  const bool all = readers.size() == algorithm_names().size();
  const std::string_view section = all ? section_of(field.key) : part_of(field);
  return cat("\n## ", section.empty() ? "The run" : section, "\n\n",
             all ? "" : cat("Read by ", join(readers, ", "), ".\n\n"));
}

std::string preset_values(const Preset& preset) {
  std::vector<std::string> values;
  for (const auto& [key, value] : preset.values) values.push_back(cat('`', key, ": ", value, '`'));
  return join(values, ", ");
}

std::string algorithms_text() {
  std::string text = "\n## Algorithms\n\n| --algorithm | what it does |\n|---|---|\n";
  for (const Recipe& recipe : recipes())
    text += cat("| `", recipe.name, "` | ", recipe.summary, " |\n");
  for (const Preset& preset : algorithm_presets())
    text += cat("| `", preset.name, "` | ", preset.summary, ": ", preset.of, " with ",
                preset_values(preset), " |\n");
  text += "\n| dialect | algorithm | defaults that it changes |\n|---|---|---|\n";
  for (const Preset& dialect : dialects())
    text += cat("| `", dialect.name, "` | ", dialect.of, " | ", dialect.summary, ": ",
                preset_values(dialect), " |\n");
  return text;
}

}  // namespace

std::string reference_page() {
  std::string text =
      "# Configuration\n\n"
      "This page is printed by `troupe explain --reference`; a test checks that it is current.\n\n"
      "A run reads its values from the defaults below, then from those of its `dialect` and of its "
      "algorithm where that is a setting of "
      "another,\n"
      "then from the file given with `--config` (YAML or JSON), then from `--algorithm` and `--set "
      "key=value`; later ones win. `troupe "
      "explain`\n"
      "shows each value of a run and where it came from, and the run writes all of them to "
      "`config.yaml` in its output directory. A path "
      "is\n"
      "relative to the directory in which troupe is started.\n";
  text += algorithms_text();
  std::string section;
  for (const Field& field : fields()) {
    const std::string here = heading(field);
    if (here != section)
      text += cat(here, "| key | value | default | meaning |\n|---|---|---|---|\n");
    section = here;
    text += row(field);
  }
  return text;
}

}  // namespace troupe::launch
