#include "launch/run/adapter.h"

#include <algorithm>

#include "engine/adapter/init_adapter.h"
#include "engine/adapter/lora_config.h"
#include "engine/adapter/peft_file.h"
#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "engine/checkpoint/training_tensors.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"
#include "launch/run/starting_model.h"

namespace troupe::launch {
namespace adapter = engine::adapter;
namespace checkpoint = engine::checkpoint;
namespace models = engine::models;

namespace {

engine::parallel::Communicator* tp_of(const RoleParts& parts) {
  return parts.mesh ? &parts.mesh->tp() : nullptr;
}

ScoreHeadWanted head_of(const RunConfig& config) {
  const Recipe& recipe = recipe_of(config);
  return recipe.head ? recipe.head(config) : ScoreHeadWanted{};
}

// The base, with the score head that the algorithm trains.
models::DecoderSpec base_spec(const RunConfig& config) {
  auto spec = value_or_throw(checkpoint::read_folder_spec(config.model));
  value_or_throw(want_head(spec, config.model, head_of(config)));
  return spec;
}

bool same_adapter(const models::LoraSpec& a, const models::LoraSpec& b) {
  return a.dora == b.dora && a.saved == b.saved &&
         std::ranges::equal(a.targets, b.targets, [](const auto& x, const auto& y) {
           return x.module == y.module && x.rank == y.rank && x.scale == y.scale;
         });
}

void load_checkpoint_into(engine::train::Trainer& trainer, const std::string& from,
                          models::DecoderSpec base) {
  const auto& wanted = *trainer.model().spec().lora;
  base.lora.reset();
  if (!adapter::is_adapter(from))
    throw Failure({Errc::usage, cat(from,
                                    " holds a whole model and this run trains an adapter "
                                    "(lora.rank): give it another output directory")});
  const auto stored = value_or_throw(adapter::read_adapter(from, base));
  if (!same_adapter(stored.lora, wanted))
    throw Failure(
        {Errc::usage,
         cat(from, " holds another adapter than lora.* asks for (", stored.lora.targets.size(),
             " layers, the first of rank ", stored.lora.targets[0].rank,
             "; asked for: ", wanted.targets.size(), ", rank ", wanted.targets[0].rank,
             "): give the run another output directory, or the settings that it began with")});
  value_or_throw(adapter::load_adapter(from, trainer.model()));
  auto& optimizer = trainer.optimizer();
  value_or_throw(checkpoint::load_training_tensors(cat(from, "/", checkpoint::optimizer_file),
                                                   trainer.model().parameters().trained(),
                                                   &optimizer.exp_avg(), &optimizer.exp_avg_sq()));
  const auto state = value_or_throw(checkpoint::read_training_state(from));
  const Json* updates = state.state.find("updates");
  optimizer.set_steps(updates ? static_cast<std::int64_t>(updates->number()) : state.step);
}

}  // namespace

adapter::LoraConfig add_adapter(const RunConfig& config, models::DecoderSpec& spec) {
  auto wanted = value_or_throw(wanted_adapter(config, spec));
  spec.lora = std::move(wanted.lora);
  return std::move(wanted.settings);
}

std::unique_ptr<engine::train::Trainer> load_adapted_trainer(
    const RoleParts& parts, const engine::train::TrainerOptions& options) {
  const RunConfig& config = parts.config;
  const models::DecoderSpec base = base_spec(config);
  models::DecoderSpec spec = base;
  add_adapter(config, spec);
  auto model = value_or_throw(
      checkpoint::load_decoder(parts.device, config.model, std::move(spec), true, tp_of(parts)));
  const auto head = head_of(config);
  if (head.labels > 0 && head.deviation > 0 &&
      value_or_throw(checkpoint::read_folder_spec(config.model)).labels == 0)
    checkpoint::draw_score_head(*model, head.deviation,
                                static_cast<std::uint64_t>(config.train.seed));
  adapter::start_adapter(*model, static_cast<std::uint64_t>(config.lora.seed));
  if (!config.lora.adapter.empty())
    value_or_throw(adapter::load_adapter(config.lora.adapter, *model));
  auto own = options;
  own.seed = static_cast<std::uint64_t>(config.lora.seed);
  auto trainer = std::make_unique<engine::train::Trainer>(std::move(model), own, parts.mesh);
  if (!parts.from.empty()) load_checkpoint_into(*trainer, parts.from, base);
  return trainer;
}

std::unique_ptr<models::Decoder> load_adapted_decoder(const RoleParts& parts) {
  auto spec = base_spec(parts.config);
  add_adapter(parts.config, spec);
  auto model = value_or_throw(checkpoint::load_decoder(parts.device, parts.config.model,
                                                       std::move(spec), false, tp_of(parts)));
  adapter::start_adapter(*model, 0);
  return model;
}

checkpoint::ModelWriter adapter_writer(const RunConfig& config, const models::DecoderSpec& spec) {
  models::DecoderSpec base = spec;
  base.lora.reset();
  auto settings = add_adapter(config, base);
  return [settings = std::move(settings), spec, source = config.model](
             const std::string& folder, engine::nn::LogicalTensors& tensors) {
    return adapter::save_adapter(folder, tensors, settings, spec, source);
  };
}

}  // namespace troupe::launch
