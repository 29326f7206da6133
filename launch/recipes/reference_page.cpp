#include "launch/recipes/reference_page.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch::recipes {

namespace {

// A bar would end the table cell.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string code(std::string_view text) {
  return text.empty() ? std::string() : cat('`', cell(text), '`');
}

/// The default, or "by method" where the table of method_defaults() has it.
std::string default_cell(const config::Field& field) {
  const auto defaults = method_defaults();
  const bool by_method = std::ranges::any_of(
      defaults, [&](const MethodDefault& each) { return each.key == field.key; });
  return by_method ? "by method" : code(field.default_text);
}

std::string row(const config::Field& field) {
  const std::string allowed = config::allowed_text(field);
  const std::string type = field.choices.empty() ? std::string(name_of(field.kind)) : allowed;
  const std::string range = field.choices.empty() && !allowed.empty() ? ", " + allowed : "";
  return cat("| `", field.key, "` | ", type, range, " | ", default_cell(field), " | ",
             cell(field.doc), " |\n");
}

/// Some algorithms read "reward", all read "model".
std::string heading(const config::Field& field) {
  std::vector<std::string> readers;
  for (const std::string& name : algorithm_names())
    if (reads(name, field)) readers.push_back(name);
  const bool all = readers.size() == algorithm_names().size();
  const std::string_view section = all ? config::section_of(field.key) : config::part_of(field);
  return cat("\n## ", section.empty() ? "The run" : section, "\n\n",
             all ? "" : cat("Read by ", join(readers, ", "), ".\n\n"));
}

std::string preset_values(const Preset& preset) {
  std::vector<std::string> values;
  for (const auto& [key, value] : preset.values) values.push_back(cat('`', key, ": ", value, '`'));
  return join(values, ", ");
}

std::string algorithms_text() {
  std::string text = "\n## Algorithms\n\n| --algorithm | method |\n|---|---|\n";
  for (const Recipe& recipe : recipes())
    text += cat("| `", recipe.name, "` | ", recipe.summary, " |\n");
  for (const Preset& preset : algorithm_presets())
    text += cat("| `", preset.name, "` | ", preset.summary, ": ", preset.of, " with ",
                preset_values(preset), " |\n");
  text += "\n| compat | algorithm | changed defaults |\n|---|---|---|\n";
  for (const Preset& compat : compat_presets())
    text += cat("| `", compat.name, "` | ", compat.of, " | ", compat.summary, ": ",
                preset_values(compat), " |\n");
  return text;
}

std::string method_defaults_text() {
  std::string text =
      "\n## Defaults of the methods\n\n"
      "A method's default depends on what its literature and other tools use. Its variants (dapo "
      "of grpo) share it.\n"
      "`compat` changes it as above. With an adapter (`lora.rank`, `lora.adapter`) the learning "
      "rate is ten times that of\n"
      "the whole model, as in TRL's scripts and in \"LoRA Without Regret\" (Schulman et al. "
      "2025).\n\n"
      "| method | key | default | with an adapter | source |\n|---|---|---|---|---|\n";
  for (const MethodDefault& each : method_defaults())
    text += cat("| `", each.method, "` | `", each.key, "` | ", code(each.value), " | ",
                code(each.with_adapter), " | ", cell(each.source), " |\n");
  return text;
}

}  // namespace

std::string reference_page() {
  std::string text =
      "# Configuration\n\n"
      "This page is the output of `troupe explain --reference`; a test checks that it is "
      "current.\n\n"
      "A run takes its settings from the defaults below, then from its `compat` preset, then from "
      "the preset of its\n"
      "algorithm, then from the file given with `--config` (YAML or JSON), then from `--algorithm` "
      "and `--set key=value`.\n"
      "Later sources override earlier ones. `troupe explain` prints the settings of a run "
      "(`--all`: the defaults, too) and their "
      "origin, and the run writes\n"
      "those that it uses to `config.yaml` in its output directory. Paths are relative to the "
      "working directory. `--model DIR`,\n"
      "`--data FILES`, `--output DIR`, `--resume auto|never|DIR` and `--steps N` are short for "
      "`--set model=DIR`,\n"
      "`data.path`, `output`, `resume` and `train.steps`; a key=value without --set is also "
      "understood. Names of other tools\n"
      "(`learning_rate`, `num_generations`) are answered with the key here, and `troupe import` "
      "converts whole files.\n";
  text += algorithms_text();
  text += method_defaults_text();
  std::string section;
  for (const config::Field& field : config::fields()) {
    const std::string here = heading(field);
    if (here != section)
      text += cat(here, "| key | value | default | meaning |\n|---|---|---|---|\n");
    section = here;
    text += row(field);
  }
  return text;
}

}  // namespace troupe::launch::recipes
