#include "launch/recipes/held_out.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/pretrain.h"
#include "launch/recipes/sampling.h"

namespace troupe::launch::recipes {
namespace {

void validate_eval_path(Validation& v) {
  const auto& held_out = v.config.eval.path;
  if (!has_held_out(v.config))
    v.unused("eval.every", "there are no held-out rows: eval.path is empty");
  if (v.config.data.selection.split > 0 && !held_out.empty())
    v.problem(cat(v.named("data.split"), ": eval.path is also set; keep one of them"));
  for (const auto& path : held_out)
    if (std::ranges::find(v.config.data.paths, path) != v.config.data.paths.end())
      v.warn(cat(v.named("eval.path"),
                 ": is also in data.path: eval metrics will not measure generalization"));
}

}  // namespace

void validate_eval(Validation& v) {
  validate_eval_path(v);
  v.unused({"eval.samples", "eval.temperature", "eval.pass_reward"},
           "only methods that sample (grpo, ppo) use it");
}

void validate_prompt_eval(Validation& v) {
  const config::EvalConfig& e = v.config.eval;
  validate_eval_path(v);
  if (!has_held_out(v.config))
    v.unused({"eval.samples", "eval.temperature", "eval.pass_reward"},
             "there are no held-out rows: eval.path is empty");
  if (e.temperature < 0 && e.temperature != config::EvalConfig::automatic_temperature)
    v.problem(cat(v.named("eval.temperature"),
                  ": must be -1 (automatic), 0 (greedy) or above; the nearest valid value is 0"));
  if (e.temperature == 0 && e.samples > 1)
    v.problem(cat(v.named("eval.samples"), ": greedy completions of a prompt (",
                  v.named("eval.temperature"), ") are all equal; set eval.samples to 1"));
}

void validate_following(Validation& v, std::string_view section,
                        const algorithms::ReferenceSync& following) {
  const std::string every = cat(section, ".sync_every");
  if (following.every > 0 && adapts(v.config))
    v.problem(cat(v.named(every),
                  ": with an adapter (lora.*) the reference is the frozen base model; set it to 0, "
                  "or train the whole model"));
  if (following.every == 0)
    v.unused(cat(section, ".sync_share"), cat("the reference is not updated: ", every, " is 0"));
}

bool has_held_out(const config::RunConfig& config) {
  if (reads_token_files(config)) return validates_token_files(config);
  return !config.eval.path.empty() || config.data.selection.split > 0;
}

void log_held_out(const config::RunConfig& config, const engine::data::DataReport& report) {
  // The data library has already warned if rows were dropped or truncated.
  if (config.data.selection.split > 0 && report.bad + report.untrainable + report.truncated == 0)
    log_info(cat("eval: ", report.text()));
}

engine::data::DataOptions eval_options(const RunContext& context) {
  auto options = context.data_options();
  if (context.config().data.selection.split > 0) {
    options.selection.held_out = true;
    return options;
  }
  options.selection = {};
  options.paths = context.config().eval.path;
  options.mix.clear();
  return options;
}

algorithms::HeldOutPrompts eval_settings(const config::RunConfig& config) {
  const config::EvalConfig& e = config.eval;
  algorithms::HeldOutPrompts out;
  out.every = e.every;
  out.samples = static_cast<int>(e.samples);
  out.sampling = sampling_settings(config);
  out.sampling.report_masks = false;
  const double temperature = e.temperature >= 0 ? e.temperature : e.samples > 1 ? 1 : 0;
  out.sampling.greedy = temperature == 0;
  if (!out.sampling.greedy) out.sampling.temperature = temperature;
  out.pass_reward = e.pass_reward;
  const auto needed = reward_inputs(config);
  out.send_rows = needed.rows;
  out.whole_groups = needed.whole_groups;
  return out;
}

algorithms::HeldOutPrompts held_out_prompts(const RunContext& context,
                                            std::int64_t samples_at_once) {
  auto out = eval_settings(context.config());
  out.samples_at_once = samples_at_once;
  if (!has_held_out(context.config())) return out;
  auto rows = value_or_throw(
      engine::data::load<engine::data::PromptRow>(eval_options(context), context.text()));
  log_held_out(context.config(), rows.report);
  out.rows = std::move(rows.examples);
  return out;
}

}  // namespace troupe::launch::recipes
