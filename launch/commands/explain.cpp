#include "launch/commands/explain.h"

#include <iostream>

#include "engine/base/terminal_text.h"
#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "launch/commands/memory.h"
#include "launch/config/reference_page.h"
#include "launch/config/schema.h"
#include "launch/recipes/recipes.h"
#include "launch/run/exit_code.h"

namespace troupe::launch {

namespace {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

void print_configuration(const Resolved& run) {
  std::cout << "Configuration (" << run.config.algorithm << ")\n";
  for (const Field& field : fields()) {
    if (!reads(run.config.algorithm, field)) continue;
    std::cout << "  " << padded(std::string(field.key), 30)
              << padded(for_terminal(value_text(field, run.config)), 28)
              << run.origins.at(std::string(field.key)) << '\n';
  }
}

std::string grouped(std::int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

void print_model(const engine::models::DecoderSpec& spec) {
  std::cout << "\nModel\n  " << spec.architecture << ", " << grouped(spec.parameter_count())
            << " parameters: " << spec.layers << " layers, width " << spec.width << ", "
            << spec.heads << " heads (" << spec.kv_heads << " for keys and values), inner width "
            << spec.inner << ", vocabulary " << spec.vocabulary
            << (spec.tied ? " (head tied to the embedding)" : "") << ", " << spec.max_positions
            << " positions\n";
}

void print_memory(const RunConfig& config, const engine::models::DecoderSpec& spec) {
  std::cout << "\nMemory\n";
  std::uint64_t total = 0;
  for (const MemoryPart& part : memory_needed(config, spec)) {
    std::cout << "  " << padded(part.what, 46) << bytes_text(part.bytes) << '\n';
    total += part.bytes;
  }
  const std::uint64_t available = memory_available();
  std::cout << "  " << padded("needed", 46) << bytes_text(total) << "\n  "
            << padded("available", 46) << (available ? bytes_text(available) : "unknown") << '\n';
  if (available && total > available)
    std::cout
        << "  Not enough memory: lower train.micro_batch_tokens, set train.recompute, or lower "
           "rollout.max_sequences or rollout.cache_tokens.\n";
}

std::string indented(const std::string& lines) {
  std::string text;
  for (const char c : lines) {
    text += c;
    if (c == '\n') text += "  ";
  }
  return text;
}

}  // namespace

int explain(const ExplainOptions& options) {
  if (options.reference) {
    std::cout << reference_page();
    return 0;
  }
  const Resolved run = value_or_throw(resolve(options.sources));
  print_configuration(run);
  std::cout << "\nLoss\n  " << indented(recipe_of(run.config).formula(run.config)) << '\n';
  const auto spec = value_or_throw(engine::checkpoint::read_folder_spec(run.config.model));
  print_model(spec);
  print_memory(run.config, spec);
  for (const std::string& warning : run.warnings)
    std::cout << (&warning == &run.warnings.front() ? "\nWarnings\n" : "") << "  "
              << for_terminal(warning) << '\n';
  return 0;
}

}  // namespace troupe::launch
