#include "launch/recipes/lora.h"

#include <cmath>
#include <cstdlib>

#include "engine/adapter/peft_file.h"
#include "engine/base/text.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"lora.rank",
     [](RunConfig& c) { return Slot(&c.lora.rank); },
     "train low-rank adapters of this rank and leave the model as it is; 0: train the whole model",
     "",
     {0, 1 << 16}},
    {"lora.alpha", [](RunConfig& c) { return Slot(&c.lora.alpha); },
     "the adapter counts alpha / rank times; 0: twice the rank", "", at_least_0},
    {"lora.dropout", [](RunConfig& c) { return Slot(&c.lora.dropout); },
     "of the adapter's inputs, while training", "", below_1},
    {"lora.targets", [](RunConfig& c) { return Slot(&c.lora.targets); },
     "layers that get an adapter: names or ends of names (q_proj), regular expressions over whole "
     "names, or all-linear (all but the output "
     "head)",
     "", any},
    {"lora.exclude", [](RunConfig& c) { return Slot(&c.lora.exclude); },
     "layers among them that get none, named the same way", "", any},
    {"lora.rslora", [](RunConfig& c) { return Slot(&c.lora.rslora); },
     "count alpha / sqrt(rank) times instead", "", any},
    {"lora.dora", [](RunConfig& c) { return Slot(&c.lora.dora); },
     "DoRA: train the length of each row, too", "", any},
    {"lora.rank_pattern", [](RunConfig& c) { return Slot(&c.lora.rank_pattern); },
     "another rank for some layers, such as {down_proj: 4}", "", any},
    {"lora.alpha_pattern", [](RunConfig& c) { return Slot(&c.lora.alpha_pattern); },
     "another alpha for some layers", "", any},
    {"lora.adapter", [](RunConfig& c) { return Slot(&c.lora.adapter); },
     "directory of an adapter in PEFT's form to begin with, which says the rank and all else; "
     "empty: a fresh one",
     "", any},
    {"lora.seed", [](RunConfig& c) { return Slot(&c.lora.seed); },
     "first values and dropout of the adapter", "", at_least_0},
};

template <class T>
Result<std::vector<std::pair<std::string, T>>> numbers_of(
    const std::map<std::string, std::string>& pattern, std::string_view key) {
  std::vector<std::pair<std::string, T>> out;
  for (const auto& [module, text] : pattern) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(value) || value <= 0 ||
        (std::is_integral_v<T> && (value != std::floor(value) || value > 65536)))
      return fail(Errc::usage, cat(key, ": ", quote(module), ": expected a ",
                                   std::is_integral_v<T> ? "whole number" : "number",
                                   " above 0, found ", quote(text)));
    out.emplace_back(module, static_cast<T>(value));
  }
  return out;
}

void judge_beginning(Judging& j) {
  for (const char* key : {"lora.rank", "lora.alpha", "lora.targets", "lora.exclude", "lora.rslora",
                          "lora.dora", "lora.rank_pattern", "lora.alpha_pattern", "lora.dropout"})
    if (j.given(key)) j.unused(key, "lora.adapter names an adapter, whose own settings count");
  if (base_is_reference(j.config))
    j.warn(cat(j.named("lora.adapter"),
               ": the policy is compared with the model without any adapter, not with where this "
               "run begins; to compare with that, merge "
               "the adapter first (troupe merge) and begin from the merged model"));
}

}  // namespace

std::span<const Field> lora_fields() {
  return table;
}

bool adapts(const RunConfig& config) {
  return config.lora.rank > 0 || !config.lora.adapter.empty();
}

bool base_is_reference(const RunConfig& config) {
  const Recipe* recipe = find_recipe(config.algorithm);
  return adapts(config) && recipe && recipe->reference && recipe->reference(config).empty() &&
         recipe->roles(config).reference.needed;
}

Result<engine::adapter::LoraConfig> lora_settings(const RunConfig& config) {
  const LoraSection& l = config.lora;
  auto ranks = numbers_of<std::int64_t>(l.rank_pattern, "lora.rank_pattern");
  auto alphas = numbers_of<double>(l.alpha_pattern, "lora.alpha_pattern");
  RETURN_IF_ERROR(ranks);
  RETURN_IF_ERROR(alphas);
  engine::adapter::LoraConfig out;
  out.targets = l.targets, out.exclude = l.exclude, out.rank = static_cast<int>(l.rank);
  out.alpha = l.alpha > 0 ? l.alpha : 2 * static_cast<double>(l.rank);
  out.dropout = l.dropout, out.rslora = l.rslora, out.dora = l.dora;
  out.rank_pattern = std::move(*ranks), out.alpha_pattern = std::move(*alphas);
  return out;
}

Result<WantedAdapter> wanted_adapter(const RunConfig& config,
                                     const engine::models::DecoderSpec& base) {
  WantedAdapter out;
  if (!config.lora.adapter.empty()) {
    auto given = engine::adapter::read_adapter(config.lora.adapter, base);
    RETURN_IF_ERROR(given);
    out = {std::move(given->config), std::move(given->lora)};
  } else {
    auto settings = lora_settings(config);
    RETURN_IF_ERROR(settings);
    if (base.labels > 0) settings->saved = {"score"};
    auto lora = engine::adapter::resolve_targets(*settings, base, "lora.");
    RETURN_IF_ERROR(lora);
    out = {std::move(*settings), std::move(*lora)};
  }
  RETURN_IF_ERROR(engine::adapter::check_trainable(out.lora));
  return out;
}

void judge_lora(Judging& j) {
  const LoraSection& l = j.config.lora;
  if (!adapts(j.config)) {
    for (const Field& field : lora_fields())
      if (j.given(field.key) && field.key != "lora.rank")
        j.unused(field.key, "no adapter is trained; set lora.rank, such as 16");
    return;
  }
  if (!l.adapter.empty()) judge_beginning(j);
  if (const auto settings = lora_settings(j.config); !settings) j.problem(settings.error().what);
  if (l.adapter.empty() && l.targets.empty())
    j.problem("lora.targets is empty: name layers (q_proj, v_proj), or all-linear");
  if (l.dropout > 0 && l.dora)
    j.problem(cat(j.named("lora.dropout"),
                  ": an adapter with magnitudes (lora.dora) is trained without dropout here; the "
                  "nearest valid value is 0"));
  const Recipe* recipe = find_recipe(j.config.algorithm);
  if (!recipe) return;
  const RolesNeeded roles = recipe->roles(j.config);
  if (roles.reference_follows)
    j.problem(
        "a reference that follows the policy needs a model of its own, and with an adapter the "
        "reference is the base; set dpo.sync_every "
        "to 0, or lora.rank to 0");
  if (l.dropout > 0 && roles.rollout.needed)
    j.warn(cat(j.named("lora.dropout"),
               ": what is trained is then not what was sampled: the ratio of a fresh sample is not "
               "1, and clipping acts on dropout's "
               "noise; 0 is usual with ",
               j.config.algorithm));
  if (!j.given("train.learning_rate"))
    j.warn(
        cat(j.named("train.learning_rate"),
            ": adapters usually need about ten times the rate of the whole model, such as 1e-4"));
}

}  // namespace troupe::launch
