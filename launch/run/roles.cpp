#include "launch/run/roles.h"

#include "algorithms/catalog.h"
#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/run_checkpoint.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/sampling.h"
#include "launch/run/settings.h"

namespace troupe::launch {
namespace checkpoint = engine::checkpoint;
namespace roles = actors::roles;

namespace {

engine::parallel::Communicator* tp_of(const RoleParts& parts) { return parts.mesh ? &parts.mesh->tp() : nullptr; }

std::unique_ptr<engine::train::Trainer> load_trainer(const RoleParts& parts) {
  const auto options = trainer_settings(parts.config);
  if (parts.from.empty()) {
    auto model = value_or_throw(checkpoint::load_decoder(parts.device, parts.config.model, true, tp_of(parts)));
    return std::make_unique<engine::train::Trainer>(std::move(model), options, parts.mesh);
  }
  auto spec = spec_of_run(parts.config, parts.from);
  const bool tied = spec.tied;
  auto model = std::make_unique<engine::models::Decoder>(parts.device, std::move(spec), true, tp_of(parts));
  auto trainer = std::make_unique<engine::train::Trainer>(std::move(model), options, parts.mesh);
  auto& optimizer = trainer->optimizer();
  const auto loaded = value_or_throw(
      checkpoint::load_checkpoint(parts.from, trainer->model().parameters(), tied, &optimizer.exp_avg(), &optimizer.exp_avg_sq()));
  optimizer.set_steps(loaded.step);
  return trainer;
}

roles::Saver saver(const RunConfig& config, const checkpoint::DirectoryLock* output, const engine::parallel::Mesh* mesh) {
  return [config, output, mesh](std::int64_t step, const Json& state, engine::train::Trainer& trainer) {
    Json whole = Json::Object{};
    whole.set("algorithm", config.algorithm);
    whole.set("data", state);
    auto& optimizer = trainer.optimizer();
    const checkpoint::Snapshot snapshot{step,
                                        trainer.model().parameters(),
                                        {.source = config.model, .tied = trainer.model().spec().tied},
                                        optimizer.exp_avg(),
                                        optimizer.exp_avg_sq(),
                                        std::move(whole)};
    const checkpoint::WriteOptions options{.keep_last = static_cast<int>(config.train.keep_last)};
    if (mesh) return checkpoint::write_checkpoint(*mesh, output, snapshot, options);
    return checkpoint::write_checkpoint(*output, snapshot, options);
  };
}

}  // namespace

engine::models::DecoderSpec spec_of_run(const RunConfig& config, const std::string& from) {
  return value_or_throw(checkpoint::read_folder_spec(from.empty() ? config.model : from));
}

roles::Trainer make_policy(const RoleParts& parts, const checkpoint::DirectoryLock* output) {
  check((output != nullptr) == (!parts.mesh || parts.mesh->leads()), "the leader of a policy, and nobody else, writes checkpoints");
  return roles::Trainer(load_trainer(parts), algorithms::losses(), saver(parts.config, output, parts.mesh), parts.mesh);
}

roles::Scorer make_reference(const RoleParts& parts) {
  const std::string given = recipe_of(parts.config).reference(parts.config);
  auto model = value_or_throw(checkpoint::load_decoder(parts.device, given.empty() ? parts.config.model : given, false, tp_of(parts)));
  return roles::Scorer(std::move(model), scoring_settings(parts.config), parts.mesh);
}

roles::Rollout make_rollout(const RoleParts& parts, std::shared_ptr<const TextModel> text) {
  const auto spec = spec_of_run(parts.config, parts.from);
  auto settings = generator_settings(parts.config, spec);
  settings.decode = [text = std::move(text)](std::span<const std::int32_t> ids) { return text->decode(ids); };
  auto model = std::make_unique<engine::models::Decoder>(parts.device, spec, false, tp_of(parts));
  auto shadow = std::make_unique<engine::models::Decoder>(parts.device, spec, false, tp_of(parts));
  return value_or_throw(roles::Rollout::create(std::move(model), std::move(shadow), std::move(settings), parts.mesh));
}

roles::Verifier make_verifier(const RunConfig& config) {
  auto rules = value_or_throw(actors::rules::Rules::from_json(reward_rules(config), "reward"));
  value_or_throw(rules.start());
  return roles::Verifier(std::move(rules));
}

}  // namespace troupe::launch
