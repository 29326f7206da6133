#include "launch/tools/megatron/training.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "launch/commands/train.h"
#include "launch/tools/convert/convert.h"
#include "launch/tools/megatron/initial_model.h"
#include "launch/tools/migration/conversion.h"
#include "launch/tools/migration/settings.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::tools::megatron {
namespace {

namespace fs = std::filesystem;

std::int64_t whole(const std::string& text, std::int64_t otherwise) {
  std::int64_t out = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
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
    double value = 0;
    const std::string& text = scale->values[0];
    std::from_chars(text.data(), text.data() + text.size(), value);
    if (!(value > 0))
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
  convert::ConvertOptions options;
  options.load_dir = run.save + "/latest";
  options.save_dir = made;
  options.use_mcore = true;
  options.orm = run.algorithm == "orm" || run.algorithm == "prm";
  options.tensor = run.tensor;
  options.layers.pipeline = run.pipeline;
  options.layers.layers_per_virtual = run.layers_per_virtual;
  options.layer_list = run.layer_list;
  options.empty_places = run.empty_places;
  RETURN_IF_ERROR(convert::convert(options));
  fs::rename(made + "/config.json", run.save + "/config.json", failed);
  if (!failed) fs::rename(made + "/iter_0000001", target, failed);
  if (failed) return fail(Errc::io, cat(target, ": ", failed.message()));
  RETURN_IF_ERROR(sync_directory(run.save));
  fs::remove_all(made, failed);
  return publish();
}

}  // namespace

Result<TrainingRun> training_run(const std::string& program, const CommandLine& line) {
  for (const Given& given : line.flags)
    if (given.flag->group == "inference")
      return fail(Errc::usage,
                  cat("--", given.flag->name, ": a flag of inference, not of ", program));
  auto settings = converted(program, line);
  RETURN_IF_ERROR(settings);
  const auto model = initial_model(line);
  RETURN_IF_ERROR(model);
  TrainingRun out;
  out.algorithm = out.sources.algorithm = settings->algorithm;
  out.save = line.value("save");
  out.adapter = settings->values.contains("lora.rank") || settings->values.contains("lora.adapter");
  out.tensor = static_cast<int>(whole(line.value("tensor-model-parallel-size", "1"), 1));
  out.pipeline = static_cast<int>(whole(line.value("pipeline-model-parallel-size", "1"), 1));
  out.layers_per_virtual =
      static_cast<int>(whole(line.value("num-layers-per-virtual-pipeline-stage", "0"), 0));
  if (const Given* list = line.find("num-layer-list")) out.layer_list = join(list->values, " ");
  if (const Given* list = line.find("noop-layers")) out.empty_places = join(list->values, " ");
  settings->values.erase("output");
  settings->values.erase("model");
  std::vector<std::string>& sets = out.sources.sets;
  for (const auto& [key, value] : settings->values) {
    const auto text = set_value(value.yaml);
    RETURN_IF_ERROR(text);
    sets.push_back(cat(key, '=', *text));
  }
  sets.push_back(cat("model=", model->folder));
  sets.push_back(cat("output=", out.save));
  sets.emplace_back("train.log_style=megatron");
  if (out.algorithm == "pretrain")
    sets.push_back(cat("init.weights=", model->random ? "random" : "file"));
  else if (model->random)
    return fail(Errc::usage, cat("--load is missing: ", out.algorithm, " starts from a model"));
  RETURN_IF_ERROR(add_own(line, sets));
  sets.insert(sets.end(), line.overrides.begin(), line.overrides.end());
  return out;
}

int train_gpt(const std::string& program, const std::vector<std::string>& words) {
  const auto line = value_or_throw(read_command_line(words));
  const TrainingRun run = value_or_throw(training_run(program, line));
  const int code = commands::train(run.sources);
  if (code == 0 && !run.adapter && transports::mpi::mpirun_rank() == 0)
    value_or_throw(write_checkpoint(run));
  return code;
}

}  // namespace troupe::launch::tools::megatron
