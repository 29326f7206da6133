#include "launch/commands/info/report.h"

#include <filesystem>

#include "engine/adapter/model_folders.h"
#include "engine/adapter/peft_config.h"
#include "engine/adapter/peft_file.h"
#include "engine/base/files/file.h"
#include "engine/base/json/fields.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/not_a_model.h"
#include "launch/commands/info/run_state.h"
#include "launch/journal/metrics_file.h"
#include "launch/recipes/resolve.h"
#include "launch/run/group_status.h"
#include "launch/run/resumable.h"
#include "launch/terminal/progress_line.h"

namespace troupe::launch::commands {

namespace {

namespace fs = std::filesystem;

// The configuration of the run, for what it needs besides a checkpoint's own files; without it the
// run's files are verified as those of a method without companions.
config::RunConfig config_of_run(const std::string& folder, Report& report) {
  const std::string path = folder + "/config.yaml";
  config::RunConfig config;
  const auto text = read_file(path);
  auto found = text ? recipes::config_of(*text, path) : Result<config::RunConfig>(fail(text));
  if (found) config = std::move(*found);
  if (!found) report.note(found.error().what);
  config.output = folder;
  return config;
}

// After damage to the newest checkpoint: what the same command does.
void inspect_fallback(const config::RunConfig& config, Report& report) {
  const auto found = run::find_resumable(config);
  if (!found) return report.problem(found.error());
  if (!*found) return;
  const std::string name = fs::path((*found)->path).filename().string();
  report.fact("next_step", (*found)->step);
  report.say("resumes_from", name,
             cat("the same command resumes from ", name, ", after step ", (*found)->step,
                 "; the steps since then are trained again"));
}

void inspect_latest(const std::string& folder, Report& report) {
  std::error_code ignored;
  const fs::path latest = fs::read_symlink(fs::path(folder) / "latest", ignored);
  report.say("latest", latest.string(),
             cat("newest checkpoint: ", latest.empty() ? "none" : latest.string()));
  if (latest.empty()) return;
  const config::RunConfig config = config_of_run(folder, report);
  const std::string path = (fs::path(folder) / latest).string();
  const auto verified = run::verify_resumable(config, path);
  if (!verified) {
    report.problem(verified.error());
    return inspect_fallback(config, report);
  }
  for (const std::string& warning : *verified) report.note(warning);
  const auto state = engine::checkpoint::read_training_state(path);
  if (!state) return report.problem(state.error());
  report.say("next_step", state->step,
             cat("checksums match; the same command resumes after step ", state->step,
                 "; `troupe generate --model ", folder, "/latest` uses its model"));
}

void inspect_best(const std::string& folder, Report& report) {
  std::error_code ignored;
  const fs::path best = fs::read_symlink(fs::path(folder) / "best", ignored);
  if (!best.empty())
    report.say("best", best.string(), cat("best checkpoint (train.keep_best): ", best.string()));
}

std::string state_text(const RunState& run) {
  const std::string step =
      run.steps > 0 ? cat("step ", run.step, " of ", run.steps) : cat("step ", run.step);
  switch (run.state) {
    case Progressed::running:
      return cat("running: ", run.process > 0 ? cat("process ", run.process, ", ") : "", step);
    case Progressed::complete:
      return cat("complete: ", step);
    case Progressed::interrupted:
      return cat("interrupted after a checkpoint: ", step);
    case Progressed::failed:
      return cat("ended with an error (logs/train.log): ", step);
    case Progressed::killed:
      return cat("killed: no process writes to it, and it did not end by itself; ", step);
    case Progressed::unknown:
      return cat("not running: ", step);
  }
  return step;
}

void report_state(const RunState& run, Report& report) {
  report.say("state", std::string(name_of(run.state)), state_text(run));
  if (run.process > 0) report.fact("process", run.process);
  if (run.steps > 0) report.fact("total_steps", run.steps);
  if (run.reward)
    report.say("last_reward", *run.reward, cat("last reward: ", to_text(*run.reward, 4)));
  if (run.evaluated)
    report.say("last_eval_reward", *run.evaluated,
               cat("last eval/reward: ", to_text(*run.evaluated, 4)));
  if (run.seconds_left)
    report.say("seconds_left", *run.seconds_left,
               cat("time left: about ", terminal::clock_text(*run.seconds_left)));
  for (const std::string& warning : run.warnings) report.note(warning);
}

// Of a launch that is running.
void report_groups(const std::string& folder, const RunState& state, Report& report) {
  if (state.state != Progressed::running) return;
  const auto status = run::read_status(folder);
  if (!status) return report.note(status.error().what);
  if (!*status || (state.process > 0 && (*status)->process != state.process)) return;
  report.fact("status", run::to_json(**status));
  const std::string table = run::status_table(**status);
  for (const std::string_view line : split(table, '\n'))
    if (!line.empty()) report.line(std::string(line));
}

}  // namespace

void inspect_run(const std::string& folder, Report& report) {
  report.begin("run", folder);
  const RunState state = read_run_state(folder);
  report_state(state, report);
  report_groups(folder, state, report);
  std::int64_t steps = 0, last = 0;
  journal::for_each_line(folder + "/metrics.jsonl", [&](const Json& line, std::string_view) {
    last = get_integer(line, "step", folder).value_or(last);
    steps += last > 0;  // step 0 is an evaluation before the first step
  });
  report.fact("last_step", last);
  report.say("steps", steps, cat("metrics of ", steps, " steps, up to step ", last));
  inspect_latest(folder, report);
  inspect_best(folder, report);
}

void inspect_checkpoint(const std::string& folder, Report& report) {
  report.begin("training checkpoint", folder);
  const auto manifest = engine::checkpoint::verify_checkpoint(folder);
  if (!manifest) return report.problem(manifest.error());
  report.fact("files", std::ssize(manifest->files));
  report.say(
      "step", manifest->step,
      cat("step ", manifest->step, ", ", manifest->files.size(), " files, all checksums match"));
}

void inspect_adapter(const std::string& folder, Report& report) {
  report.begin("adapter", folder);
  const std::string file = (fs::path(folder) / engine::adapter::config_file).string();
  const auto json = read_json(file);
  if (!json) return report.problem(json.error());
  const auto config = engine::adapter::read_peft_config(*json, file);
  if (!config) return report.problem(config.error());
  report.fact("rank", config->rank);
  report.say("method", config->dora ? "dora" : "lora",
             cat(config->dora ? "DoRA" : "LoRA", " of rank ", config->rank, ", alpha ",
                 to_text(config->alpha), ", over ", join(config->targets, ", ")));
  const auto base = engine::adapter::find_base(folder);
  if (!base) {
    const std::string named = engine::checkpoint::named_base(folder);
    return report.say(
        "base", named,
        cat("base: ",
            named.empty() ? "not named" : cat(quote(named, 400), ", which does not exist"),
            "; give it with --model BASE --adapter ", folder));
  }
  const auto spec = engine::checkpoint::read_folder_spec(*base);
  if (!spec) return report.problem(spec.error());
  if (const auto fits = engine::adapter::read_adapter(folder, *spec); !fits)
    return report.problem(fits.error());
  report.say("base", *base,
             cat("base: ", *base, "; the tensors match; --model ", folder, " uses both"));
}

void inspect_run_file(const std::string& path, Report& report) {
  report.begin("run file", path);
  recipes::Sources sources;
  sources.file = path;
  const auto run = recipes::resolve(sources);
  if (!run) return report.problem(run.error());
  report.say("algorithm", run->config.algorithm,
             cat("algorithm: ", run->config.algorithm, "; `troupe explain --config ", path,
                 "` shows the rest"));
  for (const std::string& warning : run->warnings) report.note(warning);
}

}  // namespace troupe::launch::commands
