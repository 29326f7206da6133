#include "launch/commands/explain.h"

#include <algorithm>
#include <iostream>

#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "launch/cluster/cluster_memory.h"
#include "launch/cluster/cluster_run.h"
#include "launch/cluster/host_command.h"
#include "launch/commands/explain/data_preview.h"
#include "launch/commands/explain/example_text.h"
#include "launch/commands/explain/preview_text.h"
#include "launch/commands/explain/run_estimate.h"
#include "launch/commands/explain/token_runs.h"
#include "launch/config/schema.h"
#include "launch/memory/check_memory.h"
#include "launch/memory/memory.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/pretrain.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/reference_page.h"
#include "launch/run/check_grids.h"
#include "launch/run/exit_code.h"
#include "launch/run/settings.h"
#include "launch/run/text_model.h"
#include "launch/serve/api/fields/fields_page.h"

namespace troupe::launch::commands {

namespace {

void set_weight(Json& out, float weight) {
  out.set("trained", weight != 0);
  if (weight != 0 && weight != 1) out.set("weight", static_cast<double>(weight));
}

Json part_json(const engine::data::SamplePart& part) {
  Json out;
  out.set("role", part.role).set("text", part.text);
  set_weight(out, part.weight);
  if (part.label) out.set("label", *part.label);
  for (const auto& [name, value] : part.members) out.set(name, value);
  return out;
}

Json run_json(const TokenRun& run) {
  Json out;
  out.set("text", run.text);
  set_weight(out, run.weight);
  Json::Array ids;
  for (const auto id : run.ids) ids.emplace_back(id);
  return out.set("ids", std::move(ids));
}

Json sequence_json(const ShownSequence& sequence, const TokenText& text) {
  Json out;
  if (!sequence.title.empty()) out.set("name", sequence.title);
  Json::Array parts, runs;
  for (const auto& part : sequence.parts) parts.push_back(part_json(part));
  if (!parts.empty()) out.set("parts", std::move(parts));
  for (const TokenRun& run : token_runs(sequence.ids, sequence.weights, text))
    runs.push_back(run_json(run));
  return out.set("runs", std::move(runs));
}

/// {"sequences": [{"name"?, "parts"?: [{"role", "text", "trained", "weight"?, "label"?, members of
/// the message...}], "runs": [{"text", "trained", "weight"?, "ids"}]}], "tools"?, "answer"?,
/// "margin"?, "classes"?}. Parts are the texts of the row; runs are what the model reads of them,
/// within train.max_length: the tokens of the template, the texts, and the end token. A weight is
/// given where it is neither 0 nor 1.
Json example_json(const ShownExample& example, const TokenText& text) {
  Json::Array sequences;
  for (const ShownSequence& sequence : example.sequences)
    sequences.push_back(sequence_json(sequence, text));
  Json out;
  out.set("sequences", std::move(sequences));
  for (const auto& [name, value] : example.members) out.set(name, value);
  return out;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

// Whether the key is in a section parallel.ROLE of which none is given: the model has no grid of
// its own.
bool is_untouched(const recipes::Resolved& run, const config::Field& field) {
  const std::string section = field.key.substr(0, field.key.rfind('.') + 1);
  if (!section.starts_with("parallel.") || std::ranges::count(section, '.') < 2) return false;
  return std::ranges::all_of(config::fields(), [&](const config::Field& each) {
    return !each.key.starts_with(section) ||
           run.origins.at(each.key).starts_with(config::default_origin);
  });
}

/// Keys with a value of their own, and those whose default depends on others; or `all`.
void print_configuration(const recipes::Resolved& run, bool all) {
  std::cout << "Configuration (" << run.config.algorithm << ")\n";
  std::int64_t others = 0;
  for (const config::Field& field : config::fields()) {
    if (!recipes::reads(run.config.algorithm, field)) continue;
    if (!all && run.origins.at(field.key) == config::default_origin) {
      ++others;
      continue;
    }
    if (is_untouched(run, field)) continue;
    std::cout << "  " << padded(std::string(field.key), 30)
              << padded(for_terminal(config::value_text(field, run.config)), 28)
              << run.origins.at(std::string(field.key)) << '\n';
  }
  if (!all) std::cout << "  " << others << " other keys have their defaults (explain --all)\n";
}

void print_model(const engine::models::DecoderSpec& spec) {
  std::cout << "\nModel\n  " << spec.architecture << ", " << grouped(spec.parameter_count())
            << " parameters"
            << (spec.experts ? cat(" (", grouped(spec.active_parameter_count()), " active)") : "")
            << ": " << spec.layers << " layers, width " << spec.width << ", " << spec.heads
            << " heads (" << spec.kv_heads << " for keys and values), inner width " << spec.inner
            << ", vocabulary " << spec.vocabulary
            << (spec.tied ? " (head tied to the embedding)" : "") << ", " << spec.max_positions
            << " positions\n";
}

void print_amount(const std::string& what, const std::string& amount) {
  std::cout << "  " << padded(what, 46) << amount << '\n';
}

void print_parts(const config::RunConfig& config, const engine::models::DecoderSpec& spec) {
  std::uint64_t total = 0;
  for (const memory::MemoryPart& part : memory::memory_needed(config, spec)) {
    print_amount(part.what, memory::bytes_text(part.bytes));
    total += part.bytes;
  }
  print_amount("bytes per trained parameter", memory::bytes_per_parameter(config));
  print_amount("needed", memory::bytes_text(total));
}

void print_groups(const cluster::ClusterRun& cluster, const engine::models::DecoderSpec& spec) {
  std::uint64_t total = 0;
  for (const cluster::GroupMemory& group :
       cluster::memory_of_groups(cluster.run.config, cluster.nodes, spec)) {
    print_amount(cat(group.name, ": weights, gradients, optimizer state"),
                 group.largest == group.bytes
                     ? memory::bytes_text(group.bytes)
                     : cat(memory::bytes_text(group.bytes), ", ", memory::bytes_text(group.largest),
                           " at a rank"));
    total += group.bytes;
  }
  print_amount("needed, without activations and caches", memory::bytes_text(total));
}

/// `enough`: of check_memory(). Returns the error with which the run would stop for want of memory.
Result<> print_available(const MemoryRoom& room, const Result<std::string>& enough) {
  print_amount("available",
               room.known() ? cat(memory::bytes_text(room.bytes), ", ", room.limit) : "unknown");
  RETURN_IF_ERROR(enough);
  if (!enough->empty()) std::cout << "  Warning: " << *enough << '\n';
  return {};
}

/// Predicted peaks of the ranks as processes, by what holds the memory.
void print_ranks(const config::RunConfig& config, const engine::models::DecoderSpec& spec) {
  const auto line = [](const std::string& name, const std::vector<std::string>& values) {
    std::cout << "  " << padded(name, 18);
    for (const std::string& value : values)
      std::cout << std::string(value.size() < 13 ? 13 - value.size() : 1, ' ') << value;
    std::cout << '\n';
  };
  std::cout << "\nMemory of each rank as a process (MiB)\n";
  line("", {"weights", "gradients", "optimizer", "activations", "operands", "other models",
            "program", "peak"});
  for (const memory::RankPeak& peak : memory::peaks_of_ranks(config, spec)) {
    const memory::RankMemory& own = peak.models;
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

int refused(const Error& error) {
  std::cout << "  Cannot be used: " << error.what << '\n';
  return run::exit_code(error.code);
}

// The model's text, and the data settings of a run of its rows.
struct RunRows {
  std::shared_ptr<run::TextModel> text;
  engine::data::DataOptions options;
};
Result<RunRows> rows_of(const config::RunConfig& config, const engine::models::DecoderSpec& spec) {
  auto text = run::TextModel::load(config, spec);
  RETURN_IF_ERROR(text);
  auto options = run::data_settings(config, spec);
  RETURN_IF_ERROR(options);
  recipes::recipe_of(config).prepare_rows(config, **text, *options);
  return RunRows{std::move(*text), std::move(*options)};
}

TokenText token_text(const run::TextModel& text) {
  if (!text.has_tokenizer()) return nullptr;
  return [&text](std::span<const std::int32_t> ids) { return text.decode_all(ids); };
}

/// A line of JSON for each of the first examples. Throws Failure.
void print_examples(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                    std::int64_t count) {
  if (recipes::reads_token_files(config))
    throw Failure({Errc::usage,
                   "--examples: the data of this run are token files (troupe "
                   "preprocess), which have no rows"});
  const RunRows rows = value_or_throw(rows_of(config, spec));
  const auto preview = value_or_throw(preview_data(
      config, rows.options, *rows.text, {.counted_bytes = 0, .shown = count, .examples = count}));
  for (const ShownExample& example : preview.shown)
    std::cout << example_json(example, token_text(*rows.text)).dump() << '\n';
}

int print_token_files(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
                      const MachineOptions& machine) {
  const auto files = recipes::token_files(config);
  if (!files) return refused(files.error());
  for (const recipes::TokenFile& file : *files)
    std::cout << "  " << file.prefix << ": " << file.documents << " documents, " << file.tokens
              << " tokens\n";
  std::cout << "\nRun\n";
  const auto size = size_of_run(config, run::max_length(config, spec), *files);
  if (!size) return refused(size.error());
  std::cout << run_estimate(config, spec, *size, machine);
  return 0;
}

/// What the run reads and how long it takes. Returns the exit code: that of the error with which
/// the run would stop when it has read its data, or 0.
int print_data(const config::RunConfig& config, const engine::models::DecoderSpec& spec,
               const MachineOptions& machine) {
  std::cout << "\nData\n";
  if (recipes::reads_token_files(config)) return print_token_files(config, spec, machine);
  const auto rows = rows_of(config, spec);
  if (!rows) return refused(rows.error());
  const auto preview = preview_data(config, rows->options, *rows->text);
  if (!preview) return refused(preview.error());
  std::cout << rows_text(*preview) << histogram_text(preview->lengths);
  std::cout << "\nRun\n";
  const auto size = size_of_run(config, spec, *preview);
  if (!size) return refused(size.error());
  std::cout << run_estimate(config, spec, *size, machine);
  const auto style = mask_style_of_stdout();
  const bool masked = preview->trained_tokens > 0;
  std::cout << "\nFirst example"
            << (!masked                     ? "\n"
                : style == MaskStyle::color ? " (in green: trained on)\n"
                                            : " (in [[brackets]]: trained on)\n")
            << example_text(preview->shown.front(), token_text(*rows->text), style);
  return 0;
}

}  // namespace

namespace {

/// Memory of a run in one process or under mpirun, or of the groups of a cluster. Throws Failure
/// where the models do not fit.
void print_memory(const cluster::ClusterRun& cluster, const engine::models::DecoderSpec& spec,
                  const memory::MemoryPlace& place) {
  const config::RunConfig& config = cluster.run.config;
  std::cout << "\nMemory\n";
  if (!cluster.nodes.empty()) {
    print_groups(cluster, spec);
    return value_or_throw(print_available(
        place.room.least(),
        check_memory(config, nodes_here(cluster.nodes, cluster.hosts), spec, place.room)));
  }
  print_parts(config, spec);
  const auto enough = print_available(place.room.least(), check_memory(config, spec, place));
  print_ranks(config, spec);
  value_or_throw(enough);
}

cluster::ClusterRun resolved(const ExplainOptions& options) {
  if (!options.cluster.empty())
    return cluster::resolve_cluster(options.sources, options.cluster, options.via);
  return {value_or_throw(recipes::resolve(options.sources)), {}, {}};
}

}  // namespace

int explain(const ExplainOptions& options) {
  if (options.reference) {
    std::cout << recipes::reference_page();
    return 0;
  }
  if (options.request_fields) {
    std::cout << serve::api::request_fields_page();
    return 0;
  }
  const cluster::ClusterRun cluster = resolved(options);
  const recipes::Resolved& run = cluster.run;
  if (options.examples > 0) {
    print_examples(run.config, value_or_throw(recipes::spec_of(run.config, run.config.model)),
                   options.examples);
    return 0;
  }
  print_configuration(run, options.all);
  std::cout << "\nLoss\n  " << indented(recipes::recipe_of(run.config).formula(run.config)) << '\n';
  const auto spec = value_or_throw(recipes::spec_of(run.config, run.config.model));
  if (cluster.nodes.empty()) value_or_throw(run::check_grids(run.config));
  print_model(spec);
  print_memory(cluster, spec, memory_of(options.machine));
  const int code = options.data ? print_data(run.config, spec, options.machine) : 0;
  for (const std::string& warning : run.warnings)
    std::cout << (&warning == &run.warnings.front() ? "\nWarnings\n" : "") << "  "
              << for_terminal(warning) << '\n';
  return code;
}

}  // namespace troupe::launch::commands
