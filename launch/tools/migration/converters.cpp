#include "launch/tools/migration/converters.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/base/errors/check.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/prompt_types.h"
#include "launch/config/paths.h"
#include "launch/config/schema.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch::tools::migration {
namespace {

struct Call {
  ImportSettings& settings;
  const tables::ToolKey& row;
  const config::YamlNode& value;
  std::vector<std::string> targets;
  std::string text;

  double number() const { return parse_number<double>(text).value_or(std::nan("")); }
  void set(const std::string& yaml) const { settings.set(targets[0], node_of_value(yaml)); }
  void none(std::string_view why) const { settings.line(Outcome::no_equivalent, why); }
  void unusable(std::string_view why) const { settings.line(Outcome::unusable, why); }
  void is_default(std::string_view why) const { settings.line(Outcome::already_default, why); }
  void part_of(std::string_view key) const {
    settings.line(Outcome::became, cat("a factor of ", key, ", see below"));
  }
};

std::string bracketed(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  for (const std::string& item : items) quoted.push_back(config::yaml_text(item));
  return cat('[', join(quoted, ", "), ']');
}

void factor(const Call& call) {
  call.part_of(call.targets.empty() ? std::string_view("train.batch_size") : call.targets[0]);
}

/// Steps, or below 1 a fraction of the run.
void whole(const Call& call) {
  if (call.number() > 0 && call.number() < 1)
    return call.settings.set("train.warmup_ratio", call.value);
  call.set(call.text);
}

void split(const Call& call) {
  if (call.number() >= 1) return call.none("a number of rows; data.split is a fraction");
  call.set(call.text);
}

void steps(const Call& call) {
  if (call.number() > 0 && call.number() < 1)
    return call.none("a fraction of the run; write a number of steps");
  call.set(call.text);
}

void epochs(const Call& call) {
  const config::Field* field = config::find_field(call.targets[0]);
  if (call.number() == std::floor(call.number()) || field->kind != config::ValueKind::whole)
    return call.set(call.text);
  call.set(to_text(std::ceil(call.number()), 0));
  call.settings.note(cat(call.targets[0], " is rounded up from ", call.text));
}

void capped(const Call& call) {
  const config::Field* field = config::find_field(call.targets[0]);
  call.set(to_text(std::clamp(call.number(), field->range.low, field->range.high), 0));
}

void beta(const Call& call) {
  call.part_of("train.betas");
}

void min_lr(const Call& call) {
  const double peak = call.settings.number("lr", call.settings.number("optim.lr", 0));
  const std::string style = call.settings.theirs("lr_decay_style", "");
  // transformers lifts the warm-up of this schedule, which Megatron does not.
  if (call.targets[0] == "train.warmup_start_ratio" && style == "WSD" && call.number() == 0)
    return call.set("0");
  if (call.targets[0] == "train.min_lr_ratio" && style == "constant")
    return call.is_default("the schedule constant has no minimum");
  if (call.number() == 0 || !(peak > 0)) return call.is_default("0");
  call.set(to_text(std::round(call.number() / peak * 1e12) / 1e12));
}

void list(const Call& call) {
  const auto items = items_of(call.value);
  const config::Field* field = config::find_field(call.targets[0]);
  const bool numbers = field && field->kind == config::ValueKind::numbers;
  call.set(numbers ? cat('[', join(items, ", "), ']') : bracketed(items));
}

void megatron_list(const Call& call) {
  std::vector<std::string> names;
  for (const std::string& item : items_of(call.value)) {
    std::string ours = item;
    for (const auto& [theirs, list] : call.row.values)
      if (theirs == item) ours = list.substr(1, list.size() - 2);
    for (const auto name : tables::pieces(ours, ',')) names.emplace_back(name);
  }
  call.set(bracketed(names));
}

/// As the run will find it: ~ is the home directory.
std::string as_found(const std::string& path) {
  const auto expanded = config::expand_home("a path", path);
  return expanded ? *expanded : path;
}

void files(const Call& call) {
  std::vector<std::string> paths = items_of(call.value);
  // Megatron: WEIGHT PATH WEIGHT PATH
  std::erase_if(paths, [](const auto& path) { return parse_number<double>(path).has_value(); });
  std::vector<std::string> missing;
  std::error_code ignored;
  for (const std::string& path : paths)
    if (!std::filesystem::exists(as_found(path), ignored)) missing.push_back(path);
  call.set(bracketed(paths));
  if (!missing.empty())
    call.settings.note(cat(call.targets[0], ": ", join(missing, ", "),
                           missing.size() > 1 ? " are no files here" : " is no file here",
                           "; write the files in its place, or give ",
                           call.targets[0] == "data.path" ? "--data FILE" : "eval.path=FILE"));
}

void model(const Call& call) {
  call.settings.set(call.targets[0], scalar_node(call.text));
  std::error_code ignored;
  if (!std::filesystem::is_directory(as_found(call.text), ignored))
    call.settings.note(cat(call.targets[0], ": ", call.text,
                           " is no directory here; download it (hf download) and write its path, "
                           "or give ",
                           call.targets[0] == "model" ? "--model DIR" : call.targets[0] + "=DIR"));
}

/// Megatron's weights, which the folder of the tokenizer has in Hugging Face's format.
void weights_folder(const Call& call) {
  if (!call.settings.theirs("tokenizer_name_or_path", "").empty())
    return call.none("weights are read from the folder of tokenizer_name_or_path");
  model(call);
}

/// A template's text is written to a file of its own.
void template_text(const Call& call) {
  if (call.text.find("{%") == std::string::npos && call.text.find("{{") == std::string::npos)
    return call.set(call.text);
  const std::string name = "chat_template.jinja";
  call.settings.converted.files[name] = call.text;
  call.set(name);
}

void chat_template(const Call& call) {
  if (engine::tokenizer::is_prompt_type(call.text)) return call.set(call.text);
  const std::string file = call.settings.theirs("prompt_type_path", "");
  if (!file.empty()) return call.set(cat(file, "#", call.text));
  call.is_default(cat("the model's own template; no prompt type is called ", call.text));
}

/// The metric by which the best checkpoint is chosen has a setting of its own.
void best(const Call& call) {
  if (call.text == "false" || call.text == "null") return call.is_default("off");
  if (call.settings.given("metric_for_best_model") || call.settings.recipe == "grpo" ||
      call.settings.recipe == "ppo")
    return call.settings.line(Outcome::became, "train.keep_best, see the metric");
  call.set("eval/loss");
}

void best_metric(const Call& call) {
  std::string name = call.text.starts_with("eval_") ? call.text.substr(5) : call.text;
  const std::string better = call.settings.theirs("greater_is_better", "");
  const std::string sign = better == "true" ? "+" : better == "false" ? "-" : "";
  call.set(cat(sign, name.starts_with("eval/") ? "" : "eval/", name));
}

/// Whether an adapter is trained, whose rank has a key of its own.
void peft(const Call& call) {
  const bool trl = call.settings.tool == tables::Tool::trl;
  if (call.text == "false" || call.text == "full") return call.is_default("the whole model");
  if (call.settings.given("lora_rank"))
    return call.settings.line(Outcome::became, "lora.rank, which has a key of its own");
  call.set(trl ? "16" : "8");
}

/// A symmetric range, where none of its sides is set by a key of its own.
void both(const Call& call) {
  std::vector<std::string> set;
  for (const std::string& target : call.targets)
    if (!call.settings.has(target)) {
      call.settings.require(target, call.text);
      set.push_back(cat(target, ": ", call.text));
    }
  if (set.empty()) return call.is_default("the two sides have values of their own");
  call.settings.line(Outcome::became, join(set, ", "));
}

void two(const Call& call) {
  const auto items = items_of(call.value);
  if (call.targets.size() < 2) return call.none("not two numbers here");
  const std::string &low = items.size() > 1 ? items[0] : "",
                    &high = items.empty() ? low : items.back();
  if (!low.empty()) call.settings.require(call.targets[0], low);
  call.settings.require(call.targets[1], high);
  call.settings.line(Outcome::became, cat(low.empty() ? "" : cat(call.targets[0], ": ", low, ", "),
                                          call.targets[1], ": ", high));
}

/// verl's "HIGH" or "LOW_HIGH".
void band(const Call& call) {
  const auto bar = call.text.find('_');
  if (bar == std::string::npos && call.text.find(',') == std::string::npos)
    return call.settings.set(call.targets.back(), call.value);
  const std::string_view text = call.text;
  const auto low = parse_number<double>(text.substr(0, bar)),
             high = parse_number<double>(text.substr(std::min(bar, text.size() - 1) + 1));
  if (!low || !high || call.targets.size() < 2)
    return call.unusable("expected HIGH or LOW_HIGH, two numbers of one filter");
  call.settings.require(call.targets[0], to_text(*low));
  call.settings.require(call.targets[1], to_text(*high));
  call.settings.line(Outcome::became, cat(call.targets[0], ": ", to_text(*low), ", ",
                                          call.targets[1], ": ", to_text(*high)));
}

/// A ratio is never below 0, so that more than 1 below 1 is no bound.
void low_clip(const Call& call) {
  call.set(call.number() > 1 ? "1" : call.text);
}

/// A likelihood term beside the preference loss.
void rpo(const Call& call) {
  if (call.number() == 0) return call.is_default("0");
  if (call.targets[0] != "dpo.loss_weights") return call.set(call.text);
  const auto& values = call.settings.converted.values;
  const auto loss = values.find("dpo.loss");
  std::string kind = loss == values.end() ? "sigmoid" : loss->second.yaml;
  std::erase_if(kind, [](char c) { return c == '[' || c == ']'; });
  call.settings.put("dpo.loss", cat('[', kind, ", sft]"));
  call.set(cat("[1, ", call.text, ']'));
}

void cdpo(const Call& call) {
  if (call.number() == 0) return call.is_default("0");
  call.settings.put("dpo.loss", "[cdpo]");
  call.set(call.text);
}

void adaptive(const Call& call) {
  call.settings.put("ppo.kl_schedule", "adaptive");
  call.set(call.text);
}

void magnitude(const Call& call) {
  const auto items = items_of(call.value);
  call.set(items.empty() ? call.text : items.back());
}

void if_set(const Call& call, std::string_view by) {
  if (call.settings.theirs(by, "false") != "true")
    return call.is_default(cat(by.substr(by.rfind('.') + 1), " is off, so it has no effect"));
  call.set(call.text);
}

void kl_loss(const Call& call) {
  if_set(call, "actor_rollout_ref.actor.use_kl_loss");
}

void kl_reward(const Call& call) {
  if_set(call, "algorithm.use_kl_in_reward");
}

/// A column with the keys that lead to the text in it: extra_info and [question].
void column(const Call& call) {
  const bool prompt = call.targets[0] == "data.columns.prompt";
  const std::string keys =
      call.settings.theirs(prompt ? "data.prompt_dict_keys" : "data.response_dict_keys", "null");
  std::vector<std::string> path{call.text};
  if (keys != "null")
    for (std::string& key : items_of(node_of_value(keys))) path.push_back(std::move(key));
  if (prompt && path.size() == 1 && call.text == "prompt") return call.is_default("the default");
  call.set(join(path, "."));
}

void prompt_length(const Call& call) {
  constexpr std::array<std::string_view, 4> names{"data.max_response_length", "generate_max_len",
                                                  "max_tokens", "max_completion_length"};
  double response = 0;
  for (const auto name : names) response = std::max(response, call.settings.number(name, 0));
  if (response == 0) return call.none("set train.max_length to this plus rollout.max_new_tokens");
  const std::string sum = to_text(call.number() + response, 0);
  call.settings.require("train.max_length", sum);
  call.settings.line(Outcome::became, cat("train.max_length: ", sum, " = ", call.text, " + ",
                                          to_text(response, 0), " (the response)"));
}

struct Named {
  std::string_view name;
  void (*convert)(const Call&);
};
constexpr std::array converters{Named{"batch", factor},
                                Named{"rollout_batch", factor},
                                Named{"mini_batch", factor},
                                Named{"generation_batch", factor},
                                Named{"steps_per_generation", factor},
                                Named{"iterations", factor},
                                Named{"rollout_steps", factor},
                                Named{"episodes", factor},
                                Named{"beta1", beta},
                                Named{"beta2", beta},
                                Named{"whole", whole},
                                Named{"steps", steps},
                                Named{"split", split},
                                Named{"epochs", epochs},
                                Named{"capped", capped},
                                Named{"min_lr", min_lr},
                                Named{"list", list},
                                Named{"megatron_list", megatron_list},
                                Named{"files", files},
                                Named{"model", model},
                                Named{"weights", weights_folder},
                                Named{"template_text", template_text},
                                Named{"template", chat_template},
                                Named{"best", best},
                                Named{"best_metric", best_metric},
                                Named{"peft", peft},
                                Named{"both", both},
                                Named{"two", two},
                                Named{"band", band},
                                Named{"low_clip", low_clip},
                                Named{"rpo", rpo},
                                Named{"cdpo", cdpo},
                                Named{"adaptive", adaptive},
                                Named{"magnitude", magnitude},
                                Named{"kl_loss", kl_loss},
                                Named{"kl_reward", kl_reward},
                                Named{"column", column},
                                Named{"prompt_length", prompt_length}};

// What follows from several settings.

void finish_batch(ImportSettings& settings) {
  const bool pairs = settings.converted.algorithm == "rloo";  // TRL's default for it
  const auto number = [&](std::string_view name, double otherwise) {
    const double value = settings.number(name, otherwise);
    return pairs && name == "num_generations" && std::isnan(value) ? 2 : value;
  };
  const BatchNumbers found =
      batch_numbers(settings.tool, settings.recipe, settings.run.devices, number);
  if (found.batch == 0) return;
  settings.current = found.batch_text;
  settings.require("train.batch_size", std::to_string(found.batch));
  settings.note(cat("train.batch_size: ", found.batch_text));
  const std::string minibatches = cat(settings.recipe, ".minibatches");
  if (found.minibatches_text.empty() || !config::find_field(minibatches)) return;
  settings.current = found.minibatches_text;
  settings.require(minibatches, std::to_string(found.minibatches));
  settings.note(cat(minibatches, ": ", found.minibatches_text));
}

void finish_betas(ImportSettings& settings) {
  const bool given = settings.given("adam_beta1") || settings.given("adam_beta2");
  if (!given || settings.has("train.betas")) return;
  settings.current = "adam_beta1, adam_beta2";
  settings.require("train.betas", cat('[', settings.theirs("adam_beta1", "0.9"), ", ",
                                      settings.theirs("adam_beta2", "0.999"), ']'));
}

std::int64_t whole_value(const ImportSettings& settings, const std::string& key) {
  const auto found = settings.converted.values.find(key);
  if (found == settings.converted.values.end()) return 1;
  const auto number = parse_number<double>(found->second.yaml);
  return number && std::abs(*number) < 1e15 ? static_cast<std::int64_t>(*number) : 1;
}

/// Counts of rollouts, as optimizer steps.
void finish_steps(ImportSettings& settings) {
  const std::string& recipe = settings.recipe;
  const std::int64_t updates =
      whole_value(settings, recipe + ".epochs") * whole_value(settings, recipe + ".minibatches");
  const auto count = [&](std::string_view theirs, const std::string& ours, double rollouts) {
    if (!settings.given(theirs)) return;
    settings.current = cat(theirs, ' ', settings.theirs(theirs, ""));
    if (rollouts <= 0 && ours == "train.steps" && settings.theirs(theirs, "") != "null")
      settings.refuse(ours, "must be above 0");
    if (rollouts <= 0) return;
    settings.require(ours, to_text(rollouts * static_cast<double>(updates), 0));
    settings.note(
        cat(ours, ": ", to_text(rollouts, 0), " (", theirs, ") x ", updates, " optimizer steps"));
  };
  for (const std::string_view name : {"train_iters", "trainer.total_training_steps"})
    count(name, "train.steps", settings.number(name, 0));
  const auto interval = [&](std::string_view name, const std::string& ours) {
    const std::string text = settings.theirs(name, "");
    const bool number = text != "false" && text != "after_each_epoch";  // as the table has them
    count(name, ours, number ? settings.number(name, 0) : 0);
  };
  for (const std::string_view name : {"save_interval", "trainer.save_freq"})
    interval(name, "train.save_every");
  interval("trainer.test_freq", "eval.every");
  const double samples = static_cast<double>(whole_value(settings, "train.batch_size") *
                                             whole_value(settings, recipe + ".minibatches"));
  count("total_episodes", "train.steps", std::ceil(settings.number("total_episodes", 0) / samples));
}

/// A number of steps overrides the epochs in every tool.
void finish_length(ImportSettings& settings) {
  const auto epochs = settings.converted.values.find("train.epochs");
  if (whole_value(settings, "train.steps") < 1 || !settings.has("train.steps") ||
      epochs == settings.converted.values.end())
    return;
  for (ReportLine& line : settings.converted.lines)
    if (line.setting == epochs->second.from)
      line = {Outcome::not_needed, line.setting, "train.steps is the length of the run"};
  settings.converted.values.erase(epochs);
}

/// Without an adapter the tools ignore the settings of one.
void finish_adapter(ImportSettings& settings) {
  if (settings.theirs("finetuning_type", "lora") != "full" &&
      settings.theirs("use_peft", "true") != "false")
    return;
  std::erase_if(settings.converted.values,
                [](const auto& each) { return each.first.starts_with("lora."); });
  for (ReportLine& line : settings.converted.lines)
    if (line.text.starts_with("lora."))
      line = {Outcome::not_needed, line.setting, "the whole model is trained"};
}

void finish_output(ImportSettings& settings) {
  const bool unknown = std::ranges::any_of(settings.run.settings, [&](const ForeignSetting& each) {
    if (each.unknown.empty()) return false;
    const auto rows = rows_of(settings.tool, each.key);
    return !rows.empty() && !rows[0]->targets.empty() && rows[0]->targets[0].key == "output";
  });
  if (settings.has("output") || unknown) return;
  settings.current = "not said";
  settings.put("output", cat("runs/", settings.converted.algorithm));
  settings.note(
      "output: the settings name no directory; write another where this one is not meant");
}

/// Variables that are set outside of the script: its arguments, the environment.
void finish_variables(ImportSettings& settings) {
  for (const auto& [key, value] : settings.converted.values)
    if (const auto at = value.yaml.find('$'); at != std::string::npos)
      settings.note(cat(key, ": ",
                        value.yaml.substr(at, value.yaml.find_first_of("/\",]", at) - at),
                        " has its value from outside of the file; write it out"));
}

void finish_compat(ImportSettings& settings) {
  const std::string name(name_of(settings.tool));
  if (!recipes::find_compat(name, settings.recipe)) return;
  settings.current = cat("the defaults of ", tables::title_of(settings.tool));
  settings.put("compat", name);
}

}  // namespace

void convert_value(ImportSettings& settings, const tables::ToolKey& row,
                   const config::YamlNode& value) {
  const Call call{settings, row, value, settings.targets(row), text_of(value)};
  if (convert_reward(settings, row.converter, value)) return;
  if (convert_pretraining(settings, row, value)) return;
  if (convert_dataset(settings, row.converter, value)) return;
  for (const Named& each : converters)
    if (each.name == row.converter) return each.convert(call);
  check(false, cat("no converter @", row.converter));
}

void finish(ImportSettings& settings) {
  for (const auto step :
       {finish_batch, finish_betas, finish_steps, finish_length, finish_adapter, finish_pretraining,
        finish_output, finish_compat, finish_reward, finish_variables}) {
    settings.current = "what follows from several settings";
    settings.attempt([&] { step(settings); });
  }
}

}  // namespace troupe::launch::tools::migration
