// The configuration as text: a YAML file, and the reference page of all keys.
#include "engine/base/text.h"
#include "launch/fields.h"
#include "launch/resolve.h"

namespace troupe::launch {

namespace {

std::string_view section_of(std::string_view key) {
  const auto dot = key.find('.');
  return dot == std::string_view::npos ? std::string_view{} : key.substr(0, dot);
}

std::string code(std::string_view text) { return text.empty() ? std::string() : cat('`', text, '`'); }

std::string row(const Field& field) {
  const RunConfig defaults;
  std::string type(type_name(field));
  const std::string allowed = field.choices.empty() ? allowed_text(field) : "";
  if (!field.choices.empty()) type = allowed_text(field);
  std::string of;
  if (!field.algorithms.empty()) of = cat(" (", field.algorithms, ")");
  return cat("| `", field.key, "` | ", type, allowed.empty() ? "" : ", ", allowed, " | ", code(value_text(field, defaults)), " | ",
             field.doc, of, " |\n");
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
    const std::string_view name = section.empty() ? field.key : field.key.substr(section.size() + 1);
    text += cat(section.empty() ? "" : "  ", name, ": ", value_text(field, config), "\n");
  }
  return text;
}

std::string reference_page() {
  std::string text =
      "# Configuration\n\n"
      "This page is printed by `troupe explain --reference`; a test checks that it is current.\n\n"
      "A run reads its values from the defaults below, then from the file given with `--config` (YAML or JSON), then from `--algorithm` "
      "and\n"
      "`--set key=value`; later ones win. `troupe explain` shows each value of a run and where it came from, and the run writes all of "
      "them to\n"
      "`config.yaml` in its output directory. A path is relative to the directory in which troupe is started.\n";
  std::string section = "?";
  for (const Field& field : fields()) {
    if (section != section_of(field.key)) {
      section = section_of(field.key);
      text += cat("\n## ", section.empty() ? "The run" : section, "\n\n| key | value | default | meaning |\n|---|---|---|---|\n");
    }
    text += row(field);
  }
  return text;
}

}  // namespace troupe::launch
