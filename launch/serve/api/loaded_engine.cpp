#include "launch/serve/api/loaded_engine.h"

#include <chrono>
#include <utility>

#include "launch/serve/api/output_text.h"

namespace troupe::launch::serve::api {

namespace {

engine::generate::GeneratorConfig generator_config(const ServedModel& model,
                                                   const EngineOptions& options) {
  engine::generate::GeneratorConfig config;
  config.page_size = page_tokens;
  config.pages = static_cast<std::int32_t>((options.cache_tokens + page_tokens - 1) / page_tokens);
  config.longest = model.context();
  config.max_sequences = options.max_batch;
  config.precision = model.precision();
  config.eos_ids = model.eos_ids();
  config.prefix_cache = !options.no_prefix_cache;
  config.lookup = options.lookup;
  config.weights = options.weights;
  config.draft_tokens = options.draft_tokens;
  return config;
}

}  // namespace

Result<LoadedEngine> LoadedEngine::load(const ServedModelOptions& model,
                                        const EngineOptions& engine,
                                        const engine::models::ModelPart& part) {
  auto loaded = ServedModel::load(model, part);
  RETURN_IF_ERROR(loaded);
  LoadedEngine out{.model = std::move(*loaded),
                   .draft = nullptr,
                   .config = {},
                   .limits = engine::serving::ServiceLimits{
                       .max_batch = engine.max_batch,
                       .max_waiting = static_cast<std::size_t>(engine.max_waiting),
                       .deadline = std::chrono::seconds(engine.request_seconds)}};
  out.config = generator_config(out.model, engine);
  if (out.model.pools() || engine.draft.empty()) return out;
  model::ModelOptions of_draft = model.model;
  of_draft.model = engine.draft;
  of_draft.adapter.clear();
  of_draft.overrides = {};
  auto draft = model::Model::load(of_draft, model::NeededHead::language);
  RETURN_IF_ERROR(draft);
  out.draft = std::make_unique<model::Model>(std::move(*draft));
  out.config.draft = &out.draft->decoder();
  return out;
}

actors::group::EngineParts parts_of(LoadedEngine& loaded) {
  ServedModel& model = loaded.model;
  return {.text =
              [&model](const std::vector<std::int32_t>& prompt, bool skips_special) {
                return TextAfterPrompt(*model.tokenizer(), prompt, skips_special);
              },
          .constraint =
              [&model](const std::string& source) {
                return value_or_throw(model.constrain_alone(deserialized(source)));
              },
          .adapter = [&model](const std::string& folder) { return model.load_adapter(folder); },
          .weights = [&model](const std::string& folder) { return model.read_weights(folder); }};
}

}  // namespace troupe::launch::serve::api
