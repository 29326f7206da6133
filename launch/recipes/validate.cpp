#include "launch/recipes/validate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "actors/roles/rules/rules.h"
#include "engine/adapter/peft_file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/not_a_model.h"
#include "engine/data/readers/file_list.h"
#include "engine/data/readers/packed_reader.h"
#include "engine/nn/offload.h"
#include "engine/tokenizer/prompt_types.h"
#include "launch/config/schema.h"
#include "launch/recipes/experts.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/pretrain.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/rewards.h"
#include "launch/recipes/sampling.h"
#include "launch/recipes/selection.h"
#include "launch/recipes/validate_parallel.h"
#include "launch/recipes/validate_profile.h"
#include "launch/tools/tables/advice.h"

namespace troupe::launch::recipes {

namespace {

// The checks of every run; the recipe has those of its own keys.
class General {
 public:
  explicit General(Validation& validation) : v_(validation), c_(validation.config) {}

  void all() {
    required();
    config::each_number_out_of_range(c_, [this](const config::Field& field, double value,
                                                bool whole) { number(field, value, whole); });
    schedule();
    types();
    recomputation();
    dropout();
    data();
    unused();
  }

 private:
  void problem(std::string text) { v_.problem(std::move(text)); }
  void warn(std::string text) { v_.warn(std::move(text)); }
  std::string named(std::string_view key) const { return v_.named(key); }
  bool given(std::string_view key) const { return v_.given(key); }

  void required() {
    algorithm();
    if (c_.model.empty()) problem("model is not set; give the model's directory: --model DIR");
    if (c_.data.paths.empty() && c_.data.mix.empty())
      problem("data.path is not set; give the file with the rows: --data FILE");
    if (!c_.data.paths.empty() && !c_.data.mix.empty())
      problem(cat(named("data.mix"), ": data.path is also set; keep one of them"));
    if (c_.data.stream && c_.train.steps == 0)
      problem(cat(named("data.stream"),
                  ": the number of rows of a stream is unknown before it is read; set the length "
                  "of the run: --steps N"));
    if (c_.output.empty()) problem("output is not set; give a directory for the run: --output DIR");
    if (!c_.output.empty() && c_.output == c_.model)
      problem(cat(named("output"), ": is the model's own directory; choose another"));
  }

  void algorithm() {
    const auto known = algorithm_names();
    if (c_.algorithm.empty())
      return problem(cat("algorithm is not set; give --algorithm, one of ", join(known, ", ")));
    const Recipe* recipe = find_recipe(c_.algorithm);
    if (!recipe) {
      const std::string meant = nearest(c_.algorithm, known);
      const std::string theirs = tools::tables::algorithm_advice(c_.algorithm);
      return problem(cat(named("algorithm"), ": must be one of ", join(known, ", "),
                         !theirs.empty() ? cat("; ", theirs)
                         : meant.empty() ? ""
                                         : cat("; did you mean ", meant, "?")));
    }
    if (c_.compat != config::Compat::none && !find_compat(name_of(c_.compat), recipe->name))
      warn(cat(named("compat"), ": changes no default of ", recipe->name));
  }

  void number(const config::Field& field, double value, bool whole) {
    const Range& r = field.range;
    const bool low_ok = r.above_low ? value > r.low : value >= r.low;
    std::string text = cat(named(field.key), ": must be ", config::allowed_text(field));
    const bool open = low_ok ? r.below_high : r.above_low;
    const double bound = low_ok ? r.high : r.or_zero && value < r.low / 2 ? 0 : r.low;
    if (!open)
      text += cat("; the nearest valid value is ", whole ? to_text(bound, 0) : to_text(bound));
    v_.wrong_value(field.key, std::move(text));
  }

  void schedule() {
    using engine::optim::ScheduleKind;
    const config::TrainConfig& t = c_.train;
    warmup("train", t);
    warmup("critic", c_.critic);
    if (t.steps > 0 && !t.warms_up_in(t.steps)) {
      warn(cat(named(t.warmup_ratio > 0 ? "train.warmup_ratio" : "train.warmup_steps"),
               ": the run of ", t.steps, " steps ends before the warmup does"));
    }
    if (t.decay_steps > 0 && t.schedule != ScheduleKind::wsd)
      warn(cat(named("train.decay_steps"), ": only the schedule wsd has a separate decay"));
    if (t.steps > 0 && t.schedule == ScheduleKind::wsd &&
        t.warmup_of(t.steps) + static_cast<double>(t.decay_steps) > static_cast<double>(t.steps)) {
      problem(cat(named("train.decay_steps"),
                  ": warmup and decay together are longer than train.steps = ", t.steps,
                  "; the nearest valid value is ",
                  std::max(0.0, std::floor(static_cast<double>(t.steps) - t.warmup_of(t.steps)))));
    }
    if (t.steps > 0) v_.unused("train.epochs", "not used, train.steps is set and overrides it");
    if (t.keep_last == 1) {
      problem(cat(named("train.keep_last"),
                  ": a run that is killed while saving needs the previous checkpoint; the nearest "
                  "valid value is 2"));
    }
    if (t.save_only_model)
      warn(cat(named("train.save_only_model"),
               ": checkpoints have no optimizer state; this run cannot be resumed"));
    if (t.learning_rate == 0) warn("train.learning_rate is 0: the weights will not change");
  }

  void types() {
    const config::TrainConfig& t = c_.train;
    if (t.dtype != engine::ops::Precision::f16)
      v_.unused({"train.loss_scale.initial", "train.loss_scale.minimum", "train.loss_scale.window",
                 "train.loss_scale.hysteresis"},
                "only train.dtype: f16 scales the loss");
    if (t.loss_scale.minimum > t.loss_scale.initial)
      problem(cat(named("train.loss_scale.minimum"), ": above train.loss_scale.initial = ",
                  to_text(t.loss_scale.initial), ", which is the nearest valid value"));
    if (t.optimizer.weights == engine::nn::WeightType::split &&
        t.dtype != engine::ops::Precision::bf16)
      problem(cat(named("train.weights"),
                  ": split weights are for train.dtype: bf16; set it, or train.weights to f32"));
    if (c_.lora.rank == 0 && c_.lora.adapter.empty()) return;
    if (t.optimizer.ema_decay > 0)
      problem(cat(named("train.ema_decay"),
                  ": an average is kept of a model that is trained whole; set it to 0, or "
                  "lora.rank to 0"));
    v_.unused("train.gradients", "not used, the gradients of an adapter are f32");
  }

  void recomputation() {
    if (!c_.train.recomputed.has(engine::nn::Recompute::full))
      v_.unused({"train.recompute_method", "train.recompute_layers", "train.recompute_in_advance"},
                "not used, only train.recompute: [full] recomputes layers");
  }

  void dropout() {
    const config::TrainConfig& t = c_.train;
    if (t.attention_dropout > 0 || t.hidden_dropout > 0)
      v_.unused("train.share_prefixes",
                "not used, dropout masks the rows of a common prefix differently");
  }

  void warmup(std::string_view section, const config::ScheduleConfig& optimizer) {
    if (optimizer.warmup_ratio > 0 && optimizer.warmup_steps > 0)
      problem(cat(named(cat(section, ".warmup_ratio")), ": ", section,
                  ".warmup_steps is also set; keep one of them"));
  }

  void data() {
    const Recipe* recipe = find_recipe(c_.algorithm);
    if (!recipe) return;
    if (recipe->rows != engine::data::Purpose::sft)
      v_.unused("data.chunk", cat("not used, ", recipe->name, " does not read documents"));
    if (recipe->rows != engine::data::Purpose::pairs)
      v_.unused("data.answer_start", cat("not used, ", recipe->name, " reads no pairs"));
    if (recipe->rows == engine::data::Purpose::prompts ||
        recipe->rows == engine::data::Purpose::steps)
      for (const char* key : {"data.begin_token", "data.end_token"})
        v_.unused(key, cat("not used, ", recipe->name, " reads no answers"));
    if (c_.data.stream && !c_.data.mix.empty() &&
        c_.data.last_batch != engine::data::LastBatch::join)
      problem(
          cat(named("data.last_batch"),
              ": a mix that is streamed has no epochs; set it to join, or data.stream to false"));
  }

  void unused() {
    if (!find_recipe(c_.algorithm)) return;
    if (find_recipe(c_.algorithm)->name != algorithms::PretrainConfig::name)
      v_.unused({"train.batch_rampup.start", "train.batch_rampup.increment",
                 "train.batch_rampup.samples", "train.schedule_unit"},
                "only pretrain uses it");
    if (find_recipe(c_.algorithm)->rows != engine::data::Purpose::sft)
      v_.unused({"train.loss_average", "train.micro_batch_rows"}, "only sft and pretrain use it");
    if (c_.train.log_style != config::LogStyle::megatron)
      v_.unused("train.log_throughput",
                "only train.log_style: megatron prints it; perf/tflops in timings.jsonl has it");
    if (c_.train.average.mean == algorithms::LossMean::tokens)
      v_.unused("train.micro_batch_rows", "only train.loss_average: micro_batches uses it");
    for (const config::Field& field : config::fields())
      if (!reads(c_.algorithm, field)) v_.unused(field.key, cat("not used by ", c_.algorithm));
  }

  Validation& v_;
  const config::RunConfig& c_;
};

void missing(Findings& findings, std::string problem) {
  findings.problems.push_back(std::move(problem));
  ++findings.missing;
}

void need_model(std::string_view key, const std::string& path, Findings& findings) {
  std::error_code why;
  if (path.empty() || std::filesystem::is_regular_file(path + "/config.json", why)) return;
  if (why == std::errc::permission_denied) return;  // loading the model reports it
  missing(findings,
          cat(key, " = ", quote(path, 400), ": ", engine::checkpoint::why_not_a_model(path)));
}

// What a path that does not exist may mean: a file beside it, or a data set of a hub.
std::string meant_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::string> names;
  const fs::path folder = fs::path(path).parent_path();
  for (const auto& file : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    if (names.size() >= 1000) break;
    names.push_back(file.path().filename().string());
  }
  const std::string near = nearest(fs::path(path).filename().string(), names);
  if (!near.empty()) return cat("; did you mean ", quote((folder / near).string(), 400), "?");
  if (!engine::checkpoint::is_hub_name(path)) return "";
  return cat("; data sets are not downloaded automatically: hf download ", path,
             " --repo-type dataset --local-dir ", path.substr(path.find('/') + 1));
}

void need_files(std::string_view key, const std::vector<std::string>& paths, Findings& findings) {
  std::error_code ignored;
  for (const std::string& path : paths) {
    if (std::filesystem::exists(path, ignored) || engine::data::find_packed_files(path) ||
        is_token_dataset(path))
      continue;
    const bool pattern = path.find_first_of("*?[") != std::string::npos;
    const auto comma = path.find(',');
    if (!pattern)
      missing(findings, cat(key, ": no file or folder ", quote(path, 400),
                            comma == std::string::npos
                                ? ""
                                : cat("; a list of files is written ", key, "=[",
                                      path.substr(0, comma), ", ", path.substr(comma + 1), "]"),
                            comma == std::string::npos ? meant_file(path) : ""));
    const auto found = pattern ? engine::data::list_data_files({path}) : std::vector<std::string>{};
    if (!found) missing(findings, cat(key, ": ", found.error().what));
  }
}

// Reward programs: their files exist. Other problems of `reward` are found by the recipe.
void need_reward_programs(const config::RunConfig& config, Findings& findings) {
  const Json list = reward_rules(config);
  if (list.array().empty()) return;
  const auto rules = actors::rules::Rules::from_json(list, "reward");
  if (!rules) return;
  const auto found = rules->check_files();
  if (!found && found.error().code == Errc::not_found)
    missing(findings, found.error().what);
  else if (!found)
    findings.problems.push_back(found.error().what);
}

void need_offload_directory(const config::RunConfig& config, Findings& findings) {
  if (config.train.offload.empty()) return;
  const auto found = engine::nn::Offload::check_directory(config.train.offload);
  if (!found && found.error().code == Errc::not_found)
    missing(findings, found.error().what);
  else if (!found)
    findings.problems.push_back(found.error().what);
}

void need_reward_models(const config::RunConfig& config, Findings& findings) {
  const auto items = reward_items(config);
  if (!items) return;  // reported by the recipe
  for (const RewardItem& item : *items)
    need_model(cat("reward ", item.label, ": path"), item.path(), findings);
}

}  // namespace

std::string Validation::named(std::string_view key) const {
  return cat(key, " = ", config::value_text(*config::find_field(key), config), " (",
             origins_.at(std::string(key)), ")");
}

bool Validation::given(std::string_view key) const {
  const auto found = origins_.find(std::string(key));
  return found != origins_.end() && !found->second.starts_with(config::default_origin);
}

void Validation::problem(std::string text) {
  if (findings_.reported.contains(text.substr(0, text.find_first_of(" :")))) return;
  if (std::ranges::find(findings_.problems, text) != findings_.problems.end()) return;
  findings_.problems.push_back(std::move(text));
}

void Validation::wrong_value(std::string_view key, std::string text) {
  problem(std::move(text));
  findings_.reported.emplace(key);
}

void Validation::unused(std::string_view key, std::string_view why) {
  const auto found = origins_.find(std::string(key));
  const bool preset =
      found != origins_.end() && (found->second.starts_with(config::compat_origin) ||
                                  found->second.starts_with(config::algorithm_origin));
  if (!given(key) || preset) return;
  findings_.unused.insert(std::string(key));
  warn(cat(named(key), ": ", why));
}

void Validation::unused_section(std::string_view section, std::string_view but,
                                std::string_view why) {
  for (const config::Field& field : config::fields())
    if (config::section_of(field.key) == section && field.key != but) unused(field.key, why);
}

void validate(const config::RunConfig& config, const config::Origins& origins, Findings& findings) {
  Validation validation(config, origins, findings);
  General(validation).all();
  validate_grids(validation);
  if (const Recipe* recipe = find_recipe(config.algorithm)) recipe->validate(validation);
  validate_lora(validation);
  validate_selection(validation);
  validate_experts(validation);
  validate_profile(validation);
}

std::set<std::string> unused_keys(const config::RunConfig& config) {
  config::Origins origins;
  for (const config::Field& field : config::fields()) origins.emplace(field.key, "config.yaml");
  Findings findings;
  validate(config, origins, findings);
  return findings.unused;
}

void validate_files(const config::RunConfig& config, Findings& findings) {
  std::error_code ignored;
  need_model("model", config.model, findings);
  if (!config.lora.adapter.empty() && !engine::adapter::is_adapter(config.lora.adapter))
    missing(findings,
            cat("lora.adapter = ", quote(config.lora.adapter, 400),
                ": has no adapter_config.json; the directory of a PEFT adapter is expected"));
  if (const Recipe* recipe = find_recipe(config.algorithm)) {
    if (recipe->reference && !engine::adapter::is_adapter(recipe->reference(config)))
      need_model(cat(recipe->name, ".reference"), recipe->reference(config), findings);
    if (recipe->roles(config).critic.needed)
      need_model("critic.model", config.critic.model, findings);
    if (recipe->roles(config).reward.needed) need_reward_models(config, findings);
  }
  need_offload_directory(config, findings);
  need_files("data.path", config.data.paths, findings);
  need_files("eval.path", config.eval.path, findings);
  need_reward_programs(config, findings);
  for (const engine::data::DataSource& source : config.data.mix)
    need_files("data.mix", source.paths, findings);
  const std::string template_file = engine::tokenizer::template_file_of(config.chat_template);
  if (!template_file.empty() && !std::filesystem::exists(template_file, ignored)) {
    missing(findings, cat("chat_template: no file ", quote(template_file, 400),
                          ", and no prompt type of that name (docs/coming-from-mindspeed.md)"));
  }
  if (!config::resume_is_automatic(config) &&
      !std::filesystem::is_directory(config.resume, ignored)) {
    missing(findings,
            cat("resume = ", quote(config.resume, 400),
                ": must be auto, never, or a checkpoint directory; there is no such directory"));
  }
}

}  // namespace troupe::launch::recipes
