#include "launch/tools/migration/converters.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/tools/migration/input.h"

namespace troupe::launch::tools::migration {
namespace {

/// "PREFIX", "PREFIX PREFIX" or "WEIGHT PREFIX WEIGHT PREFIX".
void blend(ImportSettings& settings, const config::YamlNode& value) {
  const std::vector<std::string> words = items_of(value);
  bool weighted = words.size() >= 2 && words.size() % 2 == 0;
  for (std::size_t i = 0; weighted && i < words.size(); i += 2)
    weighted = parse_number<double>(words[i]).has_value();
  std::vector<std::string> items;
  for (std::size_t i = weighted ? 1 : 0; i < words.size(); i += weighted ? 2 : 1)
    items.push_back(
        weighted ? cat("{path: ", config::yaml_text(words[i]), ", weight: ", words[i - 1], '}')
                 : config::yaml_text(words[i]));
  settings.set(weighted ? "data.mix" : "data.path",
               node_of_value(cat('[', join(items, ", "), ']')));
}

/// "START INCREMENT SAMPLES".
void rampup(ImportSettings& settings, const config::YamlNode& value) {
  const std::vector<std::string> words = items_of(value);
  if (words.size() != 3)
    return settings.line(Outcome::unusable, "expected START INCREMENT SAMPLES");
  settings.require("train.batch_rampup.increment", words[1]);
  settings.require("train.batch_rampup.samples", words[2]);
  settings.require("train.schedule_unit", "samples");  // Megatron's schedules count samples
  settings.set("train.batch_rampup.start", scalar_node(words[0]));
}

void eval_iters(ImportSettings& settings, const config::YamlNode& value) {
  if (parse_number<double>(text_of(value)) == 0.0)
    return settings.line(Outcome::became, "eval.every: 0, no evaluation");
  settings.set("pretrain.eval_batches", value);
}

/// Layers of a virtual stage: --num-layers, which counts --noop-layers, is divided by the stages.
void virtual_stage(ImportSettings& settings, const config::YamlNode& value) {
  const double layers = settings.number("num_layers", 0),
               stages = settings.number("pipeline_model_parallel_size", 1),
               each = parse_number<double>(text_of(value)).value_or(0),
               count = layers / (stages * each);
  if (!(layers >= 1))
    return settings.line(Outcome::no_equivalent,
                         "set parallel.vpp to the layers of a pipeline stage divided by this");
  if (!(each >= 1) || count != std::floor(count))
    return settings.line(
        Outcome::no_equivalent,
        cat("expected a number that divides num_layers ", to_text(layers), " over ",
            to_text(stages), " stages; parallel.layers takes numbers that differ"));
  settings.set("parallel.vpp", scalar_node(to_text(count, 0)));
}

/// A kind of recomputation beside those that other settings name.
void recompute(ImportSettings& settings, std::string_view name, const std::string& text) {
  if (text == "false" || text == "null") return settings.line(Outcome::already_default, "off");
  const bool layers = name == "recompute_granularity";
  if (layers && text != "full" && text != "selective")
    return settings.line(Outcome::unusable, "expected full or selective");
  const std::string kind = name == "recompute_norm"                  ? "norm"
                           : name == "recompute_activation_function" ? "activation"
                           : text == "full"                          ? "full"
                                                                     : "attention";
  std::vector<std::string> kinds;
  if (const auto found = settings.converted.values.find("train.recompute");
      found != settings.converted.values.end())
    kinds = items_of(node_of_value(found->second.yaml));
  if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  settings.set("train.recompute", node_of_value(cat('[', join(kinds, ", "), ']')));
}

/// --ema-decay counts with --optimizer-selection fused_ema_adamw only.
void moving_average(ImportSettings& settings) {
  const std::string optimizer = settings.theirs("optimizer_selection", "");
  if (optimizer == "fused_ema_adamw")
    return settings.set("train.ema_decay", scalar_node(settings.theirs("ema_decay", "0.9999")));
  if (optimizer.empty() || optimizer == "fused_adamw" || optimizer == "fused_torch_adamw")
    return settings.line(Outcome::already_default, "no moving average of the weights");
  settings.line(Outcome::no_equivalent,
                "AdamW, with a moving average or without, is the only optimizer");
}

/// A share of --lr-decay-iters, by default of --train-iters, which is not rounded.
void warmup_fraction(ImportSettings& settings, const config::YamlNode& value) {
  const double share = settings.number("lr_warmup_fraction", 0),
               steps = settings.number("lr_decay_iters", settings.number("train_iters", 0));
  const bool rollouts = settings.recipe == "ppo" || settings.recipe == "grpo";
  if (rollouts || !(steps > 0)) return settings.set("train.warmup_ratio", value);
  settings.set("train.warmup_steps", scalar_node(to_text(share * steps)));
}

}  // namespace

bool convert_pretraining(ImportSettings& settings, const tables::ToolKey& row,
                         const config::YamlNode& value) {
  const std::string_view converter = row.converter;
  if (converter == "recompute")
    recompute(settings, row.names[0], text_of(value));
  else if (converter == "ema")
    moving_average(settings);
  else if (converter == "warmup_fraction")
    warmup_fraction(settings, value);
  else if (converter == "blend")
    blend(settings, value);
  else if (converter == "rampup")
    rampup(settings, value);
  else if (converter == "virtual")
    virtual_stage(settings, value);
  else if (converter == "eval_iters")
    eval_iters(settings, value);
  else
    return false;
  return true;
}

/// Megatron counts samples, of which a schedule without a warm-up has one.
void finish_inverse_sqrt(ImportSettings& settings) {
  if (settings.tool != tables::Tool::mindspeed || settings.has("train.warmup_steps") ||
      settings.theirs("lr_decay_style", "") != "inverse-square-root")
    return;
  const double batch = settings.number("global_batch_size", 0);
  if (!(batch >= 1) || settings.has("train.warmup_ratio")) return;
  settings.current = "lr_decay_style inverse-square-root without a warm-up";
  settings.put("train.warmup_steps", to_text(1 / batch));
  settings.put("train.warmup_start_ratio", "1");
}

void finish_pretraining(ImportSettings& settings) {
  finish_inverse_sqrt(settings);
  if (settings.recipe != "pretrain" || settings.number("eval_iters", 1) != 0) return;
  settings.current = "eval_iters 0";
  settings.put("eval.every", "0");
}

}  // namespace troupe::launch::tools::migration
