#include "launch/commands/explain.h"

#include <algorithm>
#include <iostream>

#include "engine/base/available_memory.h"
#include "engine/base/terminal_text.h"
#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "launch/commands/explain/data_preview.h"
#include "launch/commands/explain/example_text.h"
#include "launch/commands/explain/preview_text.h"
#include "launch/commands/explain/run_estimate.h"
#include "launch/commands/memory.h"
#include "launch/config/reference_page.h"
#include "launch/config/schema.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/pretrain.h"
#include "launch/recipes/recipes.h"
#include "launch/run/check_grids.h"
#include "launch/run/exit_code.h"
#include "launch/run/settings.h"
#include "launch/run/text_model.h"
#include "launch/serve/api/fields/fields_page.h"

namespace troupe::launch {

namespace {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

// Whether the key is in a section parallel.ROLE of which none is given: the model has no grid of
// its own.
bool is_untouched(const Resolved& run, const Field& field) {
  const std::string section = field.key.substr(0, field.key.rfind('.') + 1);
  if (!section.starts_with("parallel.") || std::ranges::count(section, '.') < 2) return false;
  return std::ranges::all_of(fields(), [&](const Field& each) {
    return !each.key.starts_with(section) || run.origins.at(each.key).starts_with(default_origin);
  });
}

void print_configuration(const Resolved& run) {
  std::cout << "Configuration (" << run.config.algorithm << ")\n";
  for (const Field& field : fields()) {
    if (!reads(run.config.algorithm, field) || is_untouched(run, field)) continue;
    std::cout << "  " << padded(std::string(field.key), 30)
              << padded(for_terminal(value_text(field, run.config)), 28)
              << run.origins.at(std::string(field.key)) << '\n';
  }
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
  std::cout << "  " << padded("bytes per trained parameter", 46) << bytes_per_parameter(config)
            << '\n';
  const std::uint64_t available = memory_available();
  std::cout << "  " << padded("needed", 46) << bytes_text(total) << "\n  "
            << padded("available", 46) << (available ? bytes_text(available) : "unknown") << '\n';
  if (available && total > available)
    std::cout
        << "  Not enough memory: lower train.micro_batch_tokens, set train.recompute, or lower "
           "rollout.max_sequences or rollout.cache_tokens.\n";
}

/// Predicted peaks of the ranks as processes, by what holds the memory.
void print_ranks(const RunConfig& config, const engine::models::DecoderSpec& spec) {
  const auto line = [](const std::string& name, const std::vector<std::string>& values) {
    std::cout << "  " << padded(name, 18);
    for (const std::string& value : values)
      std::cout << std::string(value.size() < 13 ? 13 - value.size() : 1, ' ') << value;
    std::cout << '\n';
  };
  std::cout << "\nMemory of each rank as a process (MiB)\n";
  line("", {"weights", "gradients", "optimizer", "activations", "operands", "other models",
            "program", "peak"});
  for (const RankPeak& peak : peaks_of_ranks(config, spec)) {
    const RankMemory& own = peak.models;
    std::vector<std::string> values;
    for (const std::uint64_t bytes :
         {own.weights + own.adapter, own.gradients, own.moments + own.average, own.activations,
          own.products + own.widened, own.critic + peak.other_models, peak.program, peak.bytes()})
      values.push_back(to_text(static_cast<double>(bytes) / (1 << 20), 1));
    line(cat("stage ", own.stage + 1, ", part ", own.part + 1), values);
  }
}

std::string indented(const std::string& lines) {
  std::string text;
  for (const char c : lines) {
    text += c;
    if (c == '\n') text += "  ";
  }
  return text;
}

/// What the run reads and how long it takes. Returns the exit code: that of the error with which
/// the run would stop when it has read its data, or 0.
int print_data(const RunConfig& config, const engine::models::DecoderSpec& spec) {
  const auto refuse = [](const Error& error) {
    std::cout << "  Cannot be used: " << error.what << '\n';
    return exit_code(error.code);
  };
  std::cout << "\nData\n";
  if (reads_token_files(config)) {
    const auto text = token_files_text(config);
    if (!text) return refuse(text.error());
    std::cout << *text
              << pipeline_text(config, static_cast<double>(config.train.batch_size *
                                                           max_length(config, spec)));
    return 0;
  }
  const auto text = TextModel::load(config.model, config.chat_template, spec);
  if (!text) return refuse(text.error());
  auto options = data_settings(config, spec, config.data.path);
  if (!options) return refuse(options.error());
  recipe_of(config).prepare_rows(config, **text, *options);
  const auto preview = preview_data(config, *options, **text);
  if (!preview) return refuse(preview.error());
  std::cout << rows_text(*preview) << histogram_text(preview->lengths);
  std::cout << "\nRun\n";
  const auto estimate = run_estimate(config, spec, *preview);
  if (!estimate) return refuse(estimate.error());
  std::cout << *estimate;
  const auto decode = [&](std::span<const std::int32_t> ids) { return (*text)->decode_all(ids); };
  const auto style = mask_style_of_stdout();
  const bool masked = preview->trained_tokens > 0;
  std::cout << "\nFirst example"
            << (!masked                     ? "\n"
                : style == MaskStyle::color ? " (in green: trained on)\n"
                                            : " (in [[brackets]]: trained on)\n")
            << example_text(*preview->first, (*text)->has_tokenizer() ? TokenText(decode) : nullptr,
                            style);
  return 0;
}

}  // namespace

int explain(const ExplainOptions& options) {
  if (options.reference) {
    std::cout << reference_page();
    return 0;
  }
  if (options.request_fields) {
    std::cout << api::request_fields_page();
    return 0;
  }
  const Resolved run = value_or_throw(resolve(options.sources));
  print_configuration(run);
  std::cout << "\nLoss\n  " << indented(recipe_of(run.config).formula(run.config)) << '\n';
  const auto spec = value_or_throw(spec_of(run.config, run.config.model));
  value_or_throw(check_grids(run.config));
  print_model(spec);
  print_memory(run.config, spec);
  print_ranks(run.config, spec);
  const int code = options.data ? print_data(run.config, spec) : 0;
  for (const std::string& warning : run.warnings)
    std::cout << (&warning == &run.warnings.front() ? "\nWarnings\n" : "") << "  "
              << for_terminal(warning) << '\n';
  return code;
}

}  // namespace troupe::launch
