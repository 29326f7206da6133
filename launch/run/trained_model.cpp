#include "launch/run/trained_model.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "engine/adapter/adapter.h"
#include "engine/adapter/peft_file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/init_weights.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/load_parameters.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "engine/checkpoint/training_tensors.h"
#include "engine/models/split.h"
#include "engine/tokenizer/prompt_types.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/pretrain.h"
#include "launch/recipes/recipes.h"
#include "launch/run/settings.h"
#include "launch/run/training_state.h"

namespace troupe::launch::run {
namespace adapter = engine::adapter;
namespace checkpoint = engine::checkpoint;
namespace models = engine::models;

namespace {

// The folder's model with gradients, or its language model under a fresh score head, whose values
// depend on `seed` alone.
Result<std::unique_ptr<engine::models::Decoder>> load_starting_model(
    const RoleParts& parts, const std::string& folder, const recipes::ScoreHeadSpec& wanted,
    std::uint64_t seed) {
  auto spec = recipes::spec_of(parts.config, folder);
  RETURN_IF_ERROR(spec);
  const bool fresh = spec->labels == 0 && wanted.labels > 0;
  RETURN_IF_ERROR(recipes::apply_head(*spec, folder, wanted));
  auto model = engine::checkpoint::load_decoder(parts.device, folder, std::move(*spec), true,
                                                trained_part_of(parts));
  if (model && fresh && wanted.init_std > 0)
    engine::checkpoint::init_score_head(**model, wanted.init_std, seed);
  return model;
}

// A model with random weights.
std::unique_ptr<engine::models::Decoder> new_model(const RoleParts& parts) {
  const config::RunConfig& config = parts.config;
  auto spec = value_or_throw(recipes::spec_of(config, config.model));
  value_or_throw(models::check_split(spec, parts.mesh ? parts.mesh->tp().size() : 1));
  const double std_dev = config.init.std_dev > 0
                             ? config.init.std_dev
                             : value_or_throw(checkpoint::initializer_range(config.model));
  auto model = std::make_unique<models::Decoder>(parts.device, std::move(spec), true,
                                                 trained_part_of(parts));
  checkpoint::init_weights(*model, {.std_dev = std_dev,
                                    .scaled_output = config.init.scaled_output,
                                    .seed = static_cast<std::uint64_t>(config.train.seed)});
  return model;
}

// The moving average of the weights; absent: the trainer keeps none, or the checkpoint has none.
Tensor read_average(const std::string& folder, bool tied, engine::train::Trainer& trainer) {
  std::error_code ignored;
  if (!trainer.optimizer().average() || !std::filesystem::exists(folder, ignored)) return {};
  const auto& parameters = trainer.model().parameters();
  std::vector<engine::nn::ParameterSpec> specs;
  for (const auto& each : parameters.all())
    specs.push_back({each.name, each.value.shape(), each.shard, each.trainable, each.adapter});
  engine::nn::Parameters average(parameters.device(), specs, false);
  value_or_throw(checkpoint::load_parameters(folder, average,
                                             {.tied = tied, .whole = &trainer.model().whole()}));
  return average.values();
}

// Restores weights, moments and the state of the trainer.
std::unique_ptr<engine::train::Trainer> resume_trainer(
    const RoleParts& parts, const std::string& from, const engine::train::TrainerOptions& options) {
  auto spec = value_or_throw(checkpoint::read_folder_spec(from));
  const bool tied = spec.tied;
  auto model = std::make_unique<models::Decoder>(parts.device, std::move(spec), true,
                                                 trained_part_of(parts));
  auto trainer = std::make_unique<engine::train::Trainer>(std::move(model), options, parts.mesh);
  auto& optimizer = trainer->optimizer();
  const auto loaded = value_or_throw(checkpoint::load_checkpoint(
      from, trainer->model().parameters(), tied, &optimizer.exp_avg(), &optimizer.exp_avg_sq(),
      optimizer.shards(), &trainer->model().whole()));
  trainer->load_state(value_or_throw(TrainingState::from(loaded)).trainer,
                      read_average(cat(from, "/", checkpoint::average_folder), tied, *trainer));
  return trainer;
}

bool same_adapter(const models::LoraSpec& a, const models::LoraSpec& b) {
  return a.dora == b.dora && a.saved == b.saved &&
         std::ranges::equal(a.targets, b.targets, [](const auto& x, const auto& y) {
           return x.module == y.module && x.rank == y.rank && x.scale == y.scale;
         });
}

// Restores an adapter, its moments and the state of the trainer from checkpoint `from`.
void restore_adapter(engine::train::Trainer& trainer, const std::string& from,
                     models::DecoderSpec base) {
  const auto& wanted = *trainer.model().spec().lora;
  base.lora.reset();
  if (!adapter::is_adapter(from))
    throw Failure({Errc::usage, cat(from,
                                    " holds a full model, but this run trains an adapter "
                                    "(lora.rank): choose another output directory")});
  const auto stored = value_or_throw(adapter::read_adapter(from, base));
  if (!same_adapter(stored.lora, wanted))
    throw Failure({Errc::usage,
                   cat(from, " holds a different adapter from lora.* (", stored.lora.targets.size(),
                       " layers, the first of rank ", stored.lora.targets[0].rank,
                       "; expected: ", wanted.targets.size(), ", rank ", wanted.targets[0].rank,
                       "): choose another output directory or restore the original settings")});
  value_or_throw(adapter::load_adapter(from, trainer.model()));
  auto& optimizer = trainer.optimizer();
  value_or_throw(checkpoint::load_training_tensors(
      cat(from, "/", checkpoint::optimizer_file), trainer.model().parameters().trained(),
      &optimizer.exp_avg(), &optimizer.exp_avg_sq(), optimizer.shards()));
  const auto state = value_or_throw(checkpoint::read_training_state(from));
  trainer.load_state(value_or_throw(TrainingState::from(state)).trainer);
}

// Sets spec.lora from lora.*, or from the adapter that lora.adapter names. Throws Failure.
adapter::LoraConfig add_adapter(const config::RunConfig& config, models::DecoderSpec& spec) {
  auto wanted = value_or_throw(recipes::wanted_adapter(config, spec));
  spec.lora = std::move(wanted.lora);
  return std::move(wanted.settings);
}

void check_adapter_on_stage(const models::Decoder& model) {
  if (model.parameters().trained().count() > 0) return;
  throw Failure(
      {Errc::usage, cat("parallel.pp: stage ", model.stage().index + 1, " of ", model.stage().count,
                        " would train nothing, because lora.targets names no layer on it; expected "
                        "an adapter on every stage, or other parallel.layers")});
}

// The base model with the adapter of the checkpoint that the run resumes from, or a new one.
std::unique_ptr<engine::train::Trainer> load_adapted_trainer(
    const RoleParts& parts, const engine::train::TrainerOptions& options) {
  const config::RunConfig& config = parts.config;
  const models::DecoderSpec base = value_or_throw(recipes::base_spec(config));
  models::DecoderSpec spec = base;
  add_adapter(config, spec);
  auto model = value_or_throw(checkpoint::load_decoder(parts.device, config.model, std::move(spec),
                                                       true, trained_part_of(parts)));
  check_adapter_on_stage(*model);
  const auto head = recipes::head_of(config);
  if (head.labels > 0 && head.init_std > 0 &&
      value_or_throw(checkpoint::read_folder_spec(config.model)).labels == 0)
    checkpoint::init_score_head(*model, head.init_std,
                                static_cast<std::uint64_t>(config.train.seed));
  adapter::init_adapter(*model, static_cast<std::uint64_t>(config.lora.seed));
  if (!config.lora.adapter.empty())
    value_or_throw(adapter::load_adapter(config.lora.adapter, *model));
  auto own = options;
  own.adapter_seed = static_cast<std::uint64_t>(config.lora.seed);
  auto trainer = std::make_unique<engine::train::Trainer>(std::move(model), own, parts.mesh);
  if (!parts.resume_from.empty()) restore_adapter(*trainer, parts.resume_from, base);
  return trainer;
}

// The run's options with the optimizer settings of critic.*.
engine::train::TrainerOptions critic_options(const config::RunConfig& config) {
  auto options = trainer_settings(config);
  const engine::optim::AdamWConfig policy =
      std::exchange(options.optimizer, config.critic.optimizer);
  options.optimizer.weights = policy.weights;
  options.optimizer.seed = policy.seed;
  return options;
}

}  // namespace

models::ModelPart part_of(const config::ParallelConfig& parallel,
                          const engine::parallel::Mesh* mesh) {
  models::ModelPart part;
  if (mesh == nullptr) return part;
  part.tp = &mesh->tp();
  const engine::parallel::Grid& grid = mesh->grid();
  if (grid.pp > 1) {
    part.pp = &mesh->pp();
    part.layers = parallel.layers;
    part.noop = parallel.noop_layers;
    part.chunks = parallel.vpp;
  }
  part.divides_rows = parallel.sp;
  if (grid.cp > 1) {
    part.cp = &mesh->cp();
    part.ulysses = config::ulysses_degree(parallel);
    part.inner_ring = parallel.cp_window;
  }
  return part;
}

models::ModelPart part_of(const RoleParts& parts) {
  return part_of(parts.config.parallel, parts.mesh);
}

models::ModelPart trained_part_of(const RoleParts& parts) {
  models::ModelPart part = part_of(parts);
  part.types = value_types(parts.config);
  return part;
}

std::string companion_checkpoint(const std::string& policy, std::string_view folder) {
  const std::filesystem::path path(policy);
  const std::string companion =
      cat(path.parent_path().string(), "/", folder, "/", path.filename().string());
  if (auto complete = checkpoint::verify_checkpoint(companion); !complete)
    throw Failure({complete.error().code,
                   cat("cannot resume from ", policy, ": the ", folder, " must be in ", companion,
                       ": ", complete.error().what,
                       "; set resume to a checkpoint that has both, or start in another output "
                       "directory")});
  return companion;
}

std::unique_ptr<engine::train::Trainer> load_trainer(const RoleParts& parts) {
  const auto options = trainer_settings(parts.config);
  if (recipes::adapts(parts.config)) return load_adapted_trainer(parts, options);
  if (!parts.resume_from.empty()) return resume_trainer(parts, parts.resume_from, options);
  if (recipes::starts_from_random_weights(parts.config))
    return std::make_unique<engine::train::Trainer>(new_model(parts), options, parts.mesh);
  auto model =
      value_or_throw(load_starting_model(parts, parts.config.model, recipes::head_of(parts.config),
                                         static_cast<std::uint64_t>(parts.config.train.seed)));
  return std::make_unique<engine::train::Trainer>(std::move(model), options, parts.mesh);
}

std::unique_ptr<engine::train::Trainer> load_critic(const RoleParts& parts) {
  const auto options = critic_options(parts.config);
  if (!parts.resume_from.empty())
    return resume_trainer(parts, companion_checkpoint(parts.resume_from, critic_folder), options);
  const std::string source =
      parts.config.critic.model.empty() ? parts.config.model : parts.config.critic.model;
  // A fresh head is zero: every state has value 0 at first.
  auto model = load_starting_model(parts, source, {.labels = 1}, 0);
  if (!model) throw Failure({model.error().code, cat("the critic: ", model.error().what)});
  return std::make_unique<engine::train::Trainer>(std::move(*model), options, parts.mesh);
}

checkpoint::CompanionTexts companion_texts_of(const config::RunConfig& config,
                                              const std::string& source) {
  namespace tokenizer = engine::tokenizer;
  checkpoint::CompanionTexts out;
  if (!config.chat_template.empty())
    out.chat_template =
        value_or_throw(tokenizer::load_file_or_prompt_type(config.chat_template)).source();
  if (config.tokenizer_ids == tokenizer::TokenizerIds::transformers5)
    out.tokenizer = value_or_throw(tokenizer::rebuilt_tokenizer_file(source));
  return out;
}

std::unique_ptr<models::Decoder> load_adapted_decoder(const RoleParts& parts) {
  auto spec = value_or_throw(recipes::base_spec(parts.config));
  add_adapter(parts.config, spec);
  auto model = value_or_throw(checkpoint::load_decoder(parts.device, parts.config.model,
                                                       std::move(spec), false, part_of(parts)));
  adapter::init_adapter(*model, 0);
  return model;
}

checkpoint::ModelWriter adapter_writer(const config::RunConfig& config,
                                       const models::DecoderSpec& spec) {
  models::DecoderSpec base = spec;
  base.lora.reset();
  auto settings = add_adapter(config, base);
  return [settings = std::move(settings), spec, source = config.model,
          texts = companion_texts_of(config, config.model)](
             const std::string& folder, checkpoint::TensorParts& tensors) -> Result<> {
    RETURN_IF_ERROR(adapter::save_adapter(folder, tensors, settings, spec, source));
    // As PEFT and TRL save the tokenizer.
    const auto copy = [&] { return checkpoint::copy_companions(folder, source, texts); };
    return tensors.agree(tensors.is_root() ? copy() : Result<>(), folder);
  };
}

}  // namespace troupe::launch::run
