#include "launch/tools/megatron/training.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include "engine/base/files/file.h"
#include "engine/base/json/fields.h"
#include "engine/base/log/log.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/models/spec.h"
#include "launch/commands/train.h"
#include "launch/config/schema.h"
#include "launch/recipes/recipes.h"
#include "launch/run/exit_code.h"
#include "launch/tools/convert/adapter_forms.h"
#include "launch/tools/convert/convert.h"
#include "launch/tools/megatron/adapter_folder.h"
#include "launch/tools/megatron/initial_model.h"
#include "launch/tools/megatron/load_folder.h"
#include "launch/tools/migration/conversion.h"
#include "launch/tools/migration/settings.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::tools::megatron {
namespace {

namespace fs = std::filesystem;

std::int64_t whole(const std::string& text, std::int64_t otherwise) {
  return parse_number<std::int64_t>(text).value_or(otherwise);
}

config::YamlNode value_of(const Given& given) {
  if (given.values.empty()) return migration::scalar_node("true");
  if (given.values.size() == 1) return migration::node_of_value(given.values[0]);
  config::YamlNode list;
  list.kind = config::YamlNode::Kind::list;
  for (const std::string& value : given.values) list.items.push_back(migration::scalar_node(value));
  return list;
}

/// The settings that the importer converts.
migration::ForeignRun imported(const std::string& program, const CommandLine& line) {
  migration::ForeignRun out;
  out.tool = tables::Tool::mindspeed;
  out.method = program;
  for (const Given& given : line.flags)
    // The number of layers is one of config.json, and divides into virtual stages.
    if (given.flag->rule == Rule::import || given.flag->name == "num-layers")
      out.settings.push_back(
          {tables::normal_name(given.flag->name), value_of(given), "the command line"});
  return out;
}

/// The method: --stage; pretrain_gpt without it pretrains, on rows of instructions it fine-tunes.
std::string algorithm_of(const std::string& program, const CommandLine& line) {
  if (line.find("stage")) return "";
  if (program == "pretrain_gpt" && !line.find("is-instruction-dataset")) return "pretrain";
  return line.find("is-pairwise-dataset") ? "" : "sft";
}

Result<migration::Converted> converted(const std::string& program, const CommandLine& line) {
  auto out = migration::convert(imported(program, line), tables::Tool::mindspeed,
                                algorithm_of(program, line));
  RETURN_IF_ERROR(out);
  std::vector<std::string> problems;
  for (const migration::ReportLine& each : out->lines)
    if (each.outcome == migration::Outcome::no_equivalent ||
        each.outcome == migration::Outcome::unknown || each.outcome == migration::Outcome::unusable)
      problems.push_back(cat("--", each.setting, ": ", each.text));
  if (!problems.empty()) return fail(Errc::usage, join(problems, "\n"));
  return out;
}

/// --ulysses-degree-in-cp divides the ranks of hybrid_cp_algo only.
void drop_degree(migration::Converted& settings, std::vector<std::string>& notes) {
  const auto algorithm = settings.values.find("parallel.cp_algorithm");
  if (algorithm != settings.values.end() && algorithm->second.yaml == "hybrid") return;
  if (settings.values.erase("parallel.ulysses_degree") > 0)
    notes.emplace_back("--ulysses-degree-in-cp has no effect without hybrid_cp_algo");
}

/// The value of key=value: a text is not in quotes there.
Result<std::string> set_value(const std::string& yaml) {
  if (!yaml.starts_with('"') && !yaml.starts_with('\'')) return yaml;
  const auto node = config::parse_yaml(yaml, "a value");
  RETURN_IF_ERROR(node);
  return node->text;
}

/// Megatron's data-parallel size: the ranks that tensor and pipeline parallelism leave.
Result<> add_replicas(const CommandLine& line, std::vector<std::string>& sets) {
  if (!transports::mpi::under_mpirun()) return {};
  const int ranks = transports::mpi::mpirun_size();
  std::int64_t others = 1;
  for (const char* flag :
       {"tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size"})
    others *= std::max<std::int64_t>(1, whole(line.value(flag, "1"), 1));
  if (ranks % others != 0)
    return fail(Errc::usage, cat(ranks, " ranks of mpirun: expected a multiple of ", others,
                                 ", the product of the parallel sizes"));
  sets.push_back(cat("parallel.dp=", ranks / others));
  return {};
}

/// Training in f16.
void add_loss_scale(const CommandLine& line, std::vector<std::string>& sets) {
  sets.emplace_back("train.dtype=f16");
  for (const char* flag :
       {"initial-loss-scale", "min-loss-scale", "loss-scale-window", "hysteresis"})
    if (const Given* given = line.find(flag))
      sets.push_back(cat(given->flag->argument, "=", given->values[0]));
}

/// What flags set together with others.
Result<> add_own(const CommandLine& line, std::vector<std::string>& sets) {
  if (const Given* scale = line.find("initial-loss-scale")) {
    const std::string& text = scale->values[0];
    if (!(parse_number<double>(text).value_or(0) > 0))
      return fail(Errc::usage,
                  cat("--initial-loss-scale ", quote(text), ": expected a positive number"));
  }
  if (line.find("fp16")) add_loss_scale(line, sets);
  const std::int64_t rows = whole(line.value("micro-batch-size", "1"), 0),
                     length = whole(line.value("seq-length", "0"), 0);
  if (rows < 1)
    return fail(Errc::usage, cat("--micro-batch-size ", quote(line.value("micro-batch-size")),
                                 ": expected a whole number, at least 1"));
  if (line.find("micro-batch-size") && length > 0)
    sets.push_back(cat("train.micro_batch_tokens=", rows * length));
  if (line.find("no-save-optim")) sets.emplace_back("train.save_only_model=true");
  if (line.find("distributed-timeout-minutes"))
    sets.push_back(
        cat("parallel.timeout=", 60 * whole(line.value("distributed-timeout-minutes"), 0)));
  return add_replicas(line, sets);
}

/// The models and lengths of --stage trl_ppo. The critic starts from the reward model, as there.
Result<> add_ppo(const CommandLine& line, std::vector<std::string>& sets) {
  if (line.find("max-new-tokens"))
    sets.push_back(cat("rollout.max_new_tokens=", line.value("max-new-tokens")));
  const std::string given = line.value("reward-model");
  if (given.empty()) return {};
  const auto found = find_load(given);
  RETURN_IF_ERROR(found);
  if (found->megatron)
    return fail(Errc::usage, cat("--reward-model ", given,
                                 ": expected the folder of a run of --stage orm or a Hugging Face "
                                 "folder; `troupe convert --orm` makes one of a checkpoint"));
  sets.push_back(cat("reward=[{rule: model, path: \"", found->folder, "\"}]"));
  sets.push_back(cat("critic.model=", found->folder));
  return {};
}

/// Flags of other programs that act in a stage.
bool acts_in_stage(const CommandLine& line, std::string_view flag) {
  return line.value("stage") == "trl_ppo" && (flag == "max-new-tokens" || flag == "max-length");
}

/// Keys that a flag sets alone; one that is left out has its default, with a line.
void add_defaults(const CommandLine& line, TrainingRun& out) {
  const recipes::Recipe* recipe = recipes::find_recipe(out.algorithm);
  for (const Flag& flag : tables::megatron_flags()) {
    if (flag.rule != Rule::key || flag.otherwise.empty()) continue;
    const config::Field* field = config::find_field(flag.argument);
    if (!recipe || !recipes::reads(out.algorithm, *field)) continue;
    const Given* given = line.find(flag.name);
    out.sources.sets.push_back(
        cat(flag.argument, '=', given ? given->values[0] : std::string(flag.otherwise)));
    if (!given)
      out.notes.push_back(
          cat("--", flag.name, " is left out: ", flag.otherwise, ", as in Megatron"));
  }
}

/// The flag that a key has its value from, for messages.
std::string origin_of(const CommandLine& line, const std::string& key, const std::string& from) {
  std::string_view found;
  for (const Given& given : line.flags) {
    const std::string_view name = given.flag->name;
    const bool named = from.find(tables::normal_name(name)) != std::string::npos;
    if (given.flag->argument == key || (named && name.size() > found.size())) found = name;
    if (given.flag->argument == key) break;
  }
  if (!found.empty()) return cat("--", found);
  const Flag* left_out = find_flag(from.substr(0, from.find(' ')));
  return left_out ? cat("--", left_out->name, " left out") : "the flags";
}

/// Makes options of the settings, so that messages name the flag; words key=value replace them.
void name_origins(const CommandLine& line, const migration::Converted& settings,
                  recipes::Sources& sources) {
  std::map<std::string, recipes::OptionSetting> options;
  for (const std::string& set : sources.sets) {
    const std::string key = set.substr(0, set.find('='));
    const auto value = settings.values.find(key);
    const std::string from = value != settings.values.end()      ? value->second.from
                             : key == "train.micro_batch_tokens" ? "micro_batch_size"
                                                                 : "";
    options[key] = {origin_of(line, key, from), key, set.substr(key.size() + 1)};
  }
  for (const std::string& word : line.overrides) options.erase(word.substr(0, word.find('=')));
  sources.sets = line.overrides;
  for (auto& [key, option] : options) sources.options.push_back(std::move(option));
}

/// What `troupe convert` gets for the run's own division.
convert::ConvertOptions division_of(const TrainingRun& run) {
  convert::ConvertOptions options;
  options.load_dir = run.save + "/latest";
  options.save_dir = run.save + "/megatron.new";
  options.use_mcore = true;
  options.tensor = run.tensor;
  options.layers.pipeline = run.pipeline;
  options.layers.layers_per_virtual = run.layers_per_virtual;
  options.layer_list = run.layer_list;
  options.empty_places = run.empty_places;
  return options;
}

/// Makes SAVE/megatron.new of SAVE/latest; returns the name of the iteration in it.
Result<std::string> convert_latest(const TrainingRun& run, const std::string& name,
                                   std::int64_t step) {
  convert::ConvertOptions options = division_of(run);
  if (run.adapter) {
    RETURN_IF_ERROR(convert::adapter_to_megatron(options.load_dir, run.model, options, step));
    return name;
  }
  const auto config = read_json(options.load_dir + "/config.json");
  RETURN_IF_ERROR(config);
  const auto spec = engine::models::read_spec(*config, options.load_dir);
  RETURN_IF_ERROR(spec);
  options.orm = spec->labels > 0;  // a process reward model with placeholders has a language head
  RETURN_IF_ERROR(convert::convert(options));
  return std::string("iter_0000001");
}

/// Writes SAVE/latest as SAVE/iter_NNNNNNN with the run's own division.
Result<> write_checkpoint(const TrainingRun& run) {
  std::error_code failed;
  const std::string name = fs::read_symlink(run.save + "/latest", failed).filename().string();
  const std::int64_t step = whole(name.substr(std::min(name.size(), name.rfind('-') + 1)), -1);
  if (failed || step < 0) return fail(Errc::io, cat(run.save, "/latest: no checkpoint"));
  char number[32];
  std::snprintf(number, sizeof number, "iter_%07lld", static_cast<long long>(step));
  const std::string target = cat(run.save, '/', number), made = run.save + "/megatron.new";
  const auto publish = [&] {
    return write_file_durably(run.save + "/latest_checkpointed_iteration.txt", cat(step));
  };
  if (fs::exists(target, failed)) return publish();  // the last thing that gets its name
  fs::remove_all(made, failed);
  const auto inside = convert_latest(run, number, step);
  RETURN_IF_ERROR(inside);
  if (!run.adapter) fs::rename(made + "/config.json", run.save + "/config.json", failed);
  if (!failed) fs::rename(cat(made, '/', *inside), target, failed);
  if (failed) return fail(Errc::io, cat(target, ": ", failed.message()));
  RETURN_IF_ERROR(sync_directory(run.save));
  fs::remove_all(made, failed);
  return publish();
}

/// The division that the checkpoint in Megatron's layout has.
void take_division(const CommandLine& line, TrainingRun& out) {
  out.tensor = static_cast<int>(whole(line.value("tensor-model-parallel-size", "1"), 1));
  out.pipeline = static_cast<int>(whole(line.value("pipeline-model-parallel-size", "1"), 1));
  out.layers_per_virtual =
      static_cast<int>(whole(line.value("num-layers-per-virtual-pipeline-stage", "0"), 0));
  if (const Given* list = line.find("num-layer-list")) out.layer_list = join(list->values, " ");
  if (const Given* list = line.find("noop-layers")) out.empty_places = join(list->values, " ");
}

/// The folder of --lora-load in place of what the flag says.
Result<> find_adapter(const CommandLine& line, const TrainingRun& run,
                      migration::Converted& settings) {
  const auto found = settings.values.find("lora.adapter");
  if (found == settings.values.end()) return {};
  const auto folder = adapter_folder(line, run.model, run.save + "/initial_adapter");
  RETURN_IF_ERROR(folder);
  found->second.yaml = *folder;
  return {};
}

/// What the importer found, the model and the output.
Result<> add_settings(migration::Converted& settings, const InitialModel& model, TrainingRun& out) {
  settings.values.erase("output");
  settings.values.erase("model");
  std::vector<std::string>& sets = out.sources.sets;
  for (const auto& [key, value] : settings.values) {
    const auto text = set_value(value.yaml);
    RETURN_IF_ERROR(text);
    sets.push_back(cat(key, '=', *text));
  }
  sets.push_back(cat("model=", model.folder));
  for (const auto& [key, value] : model.values.overrides.object())
    sets.push_back(cat("model_overrides.", key, '=', value.dump()));
  sets.push_back(cat("output=", out.save));
  sets.emplace_back("train.log_style=megatron");
  if (out.algorithm == "pretrain")
    sets.push_back(cat("init.weights=", model.random ? "random" : "file"));
  else if (model.random)
    return fail(Errc::usage, cat("--load is missing: ", out.algorithm, " starts from a model"));
  return {};
}

}  // namespace

Result<TrainingRun> training_run(const std::string& program, const CommandLine& line) {
  for (const Given& given : line.flags)
    if (const auto of = tables::program_of(*given.flag);
        !of.empty() && !acts_in_stage(line, given.flag->name))
      return fail(Errc::usage,
                  cat("--", given.flag->name, ": a flag of ", of, ", not of ", program));
  auto settings = converted(program, line);
  RETURN_IF_ERROR(settings);
  auto model = initial_model(line);
  RETURN_IF_ERROR(model);
  TrainingRun out;
  out.algorithm = out.sources.algorithm = settings->algorithm;
  out.save = line.value("save");
  out.adapter = settings->values.contains("lora.rank") || settings->values.contains("lora.adapter");
  drop_degree(*settings, model->values.notes);
  out.model = model->folder;
  if (out.adapter) RETURN_IF_ERROR(find_adapter(line, out, *settings));
  take_division(line, out);
  std::vector<std::string>& sets = out.sources.sets;
  RETURN_IF_ERROR(add_settings(*settings, *model, out));
  RETURN_IF_ERROR(add_own(line, sets));
  if (out.algorithm == "ppo") RETURN_IF_ERROR(add_ppo(line, sets));
  out.notes = std::move(model->values.notes);
  add_defaults(line, out);
  name_origins(line, *settings, out.sources);
  return out;
}

Result<> check_training(const std::vector<std::string>& words) {
  const auto line = read_command_line({words.begin() + 1, words.end()});
  RETURN_IF_ERROR(line);
  const auto run = training_run(words[0], *line);
  RETURN_IF_ERROR(run);
  recipes::Sources sources = run->sources;
  sources.check_files = false;
  RETURN_IF_ERROR(recipes::resolve(sources));
  return {};
}

int train_gpt(const std::string& program, const std::vector<std::string>& words) {
  const auto read = [&]() -> Result<TrainingRun> {
    const auto line = read_command_line(words);
    RETURN_IF_ERROR(line);
    return training_run(program, *line);
  }();
  // All ranks find the same mistake, and mpirun ends with the first: rank 0 has the time to say it.
  if (!read && read.error().code == Errc::usage && transports::mpi::mpirun_rank() != 0) {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return run::exit_code(Errc::usage);
  }
  const TrainingRun run = value_or_throw(read);
  if (transports::mpi::mpirun_rank() == 0)
    for (const std::string& note : run.notes) log_info(note);
  const int code = commands::train(run.sources);
  if (code == 0 && transports::mpi::mpirun_rank() == 0) value_or_throw(write_checkpoint(run));
  return code;
}

}  // namespace troupe::launch::tools::megatron
