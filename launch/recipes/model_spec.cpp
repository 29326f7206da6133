#include "launch/recipes/model_spec.h"

#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch::recipes {

Json overrides_of(const config::RunConfig& config, const std::string& folder) {
  return folder == config.model ? config.model_overrides.values : Json();
}

Result<engine::models::DecoderSpec> spec_of(const config::RunConfig& config,
                                            const std::string& folder) {
  return engine::checkpoint::read_folder_spec(folder, overrides_of(config, folder));
}

ScoreHeadSpec head_of(const config::RunConfig& config) {
  const Recipe& recipe = recipe_of(config);
  return recipe.head ? recipe.head(config) : ScoreHeadSpec{};
}

Result<> apply_head(engine::models::DecoderSpec& spec, const std::string& folder,
                    const ScoreHeadSpec& wanted) {
  if (spec.labels == wanted.labels) return {};
  if (wanted.labels == 0)
    return fail(Errc::usage,
                cat(folder, ": expected a language model, found one with a score head of ",
                    spec.labels, " labels"));
  if (spec.labels != 0)
    return fail(Errc::usage, cat(folder, ": expected a language model or a score head of ",
                                 wanted.labels, " labels, found one of ", spec.labels));
  spec.labels = wanted.labels;
  spec.score_bias = wanted.bias;
  spec.tied = false;
  return {};
}

Result<engine::models::DecoderSpec> base_spec(const config::RunConfig& config) {
  auto spec = spec_of(config, config.model);
  RETURN_IF_ERROR(spec);
  RETURN_IF_ERROR(apply_head(*spec, config.model, head_of(config)));
  return spec;
}

Result<engine::models::DecoderSpec> trained_spec(const config::RunConfig& config) {
  auto spec = base_spec(config);
  if (!spec || !adapts(config)) return spec;
  auto adapter = wanted_adapter(config, *spec);
  RETURN_IF_ERROR(adapter);
  spec->lora = std::move(adapter->lora);
  return spec;
}

}  // namespace troupe::launch::recipes
