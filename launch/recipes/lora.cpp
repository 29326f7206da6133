#include "launch/recipes/lora.h"

#include "engine/adapter/model_folders.h"
#include "engine/adapter/peft_file.h"
#include "engine/base/text/text.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch::recipes {
namespace {

// A comma has a meaning in a regular expression only: "q_proj,v_proj" is a list without brackets.
void validate_names(Validation& v, std::string_view key, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (name.find(',') != std::string::npos && name.find_first_of("{[(") == std::string::npos)
      v.problem(
          cat(v.named(key), ": is one name; a list of names is written ", key, "=[", name, "]"));
}

void validate_given_adapter(Validation& v) {
  v.unused({"lora.rank", "lora.alpha", "lora.targets", "lora.exclude", "lora.parameters",
            "lora.rslora", "lora.dora", "lora.rank_pattern", "lora.alpha_pattern", "lora.dropout"},
           "lora.adapter names an adapter, which defines them");
  if (base_is_reference(v.config))
    v.warn(cat(v.named("lora.adapter"),
               ": the reference is the model without any adapter, not the initial "
               "policy; "
               "lora.reference = initial makes the adapter as it was the reference"));
}

}  // namespace

bool adapts(const config::RunConfig& config) {
  return config.lora.rank > 0 || !config.lora.adapter.empty();
}

bool base_is_reference(const config::RunConfig& config) {
  const Recipe* recipe = find_recipe(config.algorithm);
  return adapts(config) && recipe && recipe->reference && recipe->reference(config).empty() &&
         reference_folders(config).adapter.empty() && recipe->roles(config).reference.needed;
}

ReferenceFolders reference_folders(const config::RunConfig& config) {
  const Recipe* recipe = find_recipe(config.algorithm);
  const std::string named = recipe && recipe->reference ? recipe->reference(config) : "";
  if (named.empty()) {
    const bool initial = config.lora.reference == config::AdapterReference::initial;
    return {config.model, initial ? config.lora.adapter : ""};
  }
  if (engine::adapter::is_only_adapter(named)) return {config.model, named};
  return {named, ""};
}

engine::adapter::LoraConfig lora_settings(const config::RunConfig& config) {
  engine::adapter::LoraConfig out = config.lora;
  if (!(out.alpha > 0)) out.alpha = 2 * static_cast<double>(out.rank);
  return out;
}

Result<WantedAdapter> wanted_adapter(const config::RunConfig& config,
                                     const engine::models::DecoderSpec& base) {
  WantedAdapter out;
  if (!config.lora.adapter.empty()) {
    auto given = engine::adapter::read_adapter(config.lora.adapter, base);
    RETURN_IF_ERROR(given);
    out = {std::move(given->config), std::move(given->lora)};
  } else {
    auto settings = lora_settings(config);
    if (base.labels > 0) settings.saved = {"score"};
    auto lora = engine::adapter::resolve_targets(settings, base, "lora.");
    RETURN_IF_ERROR(lora);
    out = {std::move(settings), std::move(*lora)};
  }
  RETURN_IF_ERROR(engine::adapter::check_trainable(out.lora));
  return out;
}

void validate_lora(Validation& v) {
  const config::LoraSection& l = v.config.lora;
  const Recipe* recipe = find_recipe(v.config.algorithm);
  if (recipe && recipe->roles(v.config).reference_follows &&
      !reference_folders(v.config).adapter.empty())
    v.problem(cat(v.named(cat(recipe->name, ".reference")),
                  ": a reference that is updated must be a model, and this is "
                  "an adapter; merge it "
                  "(troupe merge), or set ",
                  recipe->name, ".sync_every to 0"));
  if (l.adapter.empty()) v.unused("lora.reference", "lora.adapter names no adapter");
  if (!adapts(v.config)) {
    v.unused_section("lora", "lora.rank", "no adapter is trained; set lora.rank, such as 16");
    return;
  }
  if (!l.adapter.empty()) validate_given_adapter(v);
  if (l.adapter.empty() && l.targets.empty() && l.parameters.empty())
    v.problem("lora.targets is empty: name layers (q_proj, v_proj), or all-linear");
  validate_names(v, "lora.targets", l.targets);
  validate_names(v, "lora.exclude", l.exclude);
  if (l.dropout > 0 && l.dora)
    v.problem(cat(v.named("lora.dropout"),
                  ": an adapter with magnitudes (lora.dora) is trained without "
                  "dropout; the nearest "
                  "valid value is 0"));
  if (!recipe) return;
  const RolesNeeded roles = recipe->roles(v.config);
  if (roles.reference_follows)
    v.problem(
        "a reference that is updated needs a model of its own, and with "
        "an adapter the reference "
        "is "
        "the base; set dpo.sync_every to 0, or lora.rank to 0");
  if (l.dropout > 0 && roles.rollout.needed)
    v.warn(cat(v.named("lora.dropout"),
               ": the trained policy then differs from the sampled one: the ratio of "
               "an on-policy "
               "sample is not 1, and clipping acts on dropout noise; 0 is usual with ",
               v.config.algorithm));
}

}  // namespace troupe::launch::recipes
