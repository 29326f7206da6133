#include "launch/run/roles.h"

#include <filesystem>

#include "algorithms/catalog.h"
#include "engine/base/text.h"
#include "engine/checkpoint/directory_lock.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "engine/checkpoint/write_checkpoint.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/sampling/sampling.h"
#include "launch/run/adapter.h"
#include "launch/run/follower.h"
#include "launch/run/settings.h"
#include "launch/run/starting_model.h"

namespace troupe::launch {
namespace checkpoint = engine::checkpoint;
namespace roles = actors::roles;

namespace {

engine::parallel::Communicator* tp_of(const RoleParts& parts) {
  return parts.mesh ? &parts.mesh->tp() : nullptr;
}

// With the moments of checkpoint `from`, and as many updates behind it: fewer than the run's steps
// where it was not trained in all of them.
std::unique_ptr<engine::train::Trainer> resume_trainer(
    const RoleParts& parts, const std::string& from, const engine::train::TrainerOptions& options) {
  auto spec = value_or_throw(checkpoint::read_folder_spec(from));
  const bool tied = spec.tied;
  auto model =
      std::make_unique<engine::models::Decoder>(parts.device, std::move(spec), true, tp_of(parts));
  auto trainer = std::make_unique<engine::train::Trainer>(std::move(model), options, parts.mesh);
  auto& optimizer = trainer->optimizer();
  const auto loaded = value_or_throw(checkpoint::load_checkpoint(
      from, trainer->model().parameters(), tied, &optimizer.exp_avg(), &optimizer.exp_avg_sq()));
  const Json* updates = loaded.state.find("updates");
  optimizer.set_steps(updates ? static_cast<std::int64_t>(updates->number()) : loaded.step);
  return trainer;
}

std::unique_ptr<engine::train::Trainer> load_trainer(const RoleParts& parts) {
  const auto options = trainer_settings(parts.config);
  if (adapts(parts.config)) return load_adapted_trainer(parts, options);
  if (!parts.from.empty()) return resume_trainer(parts, parts.from, options);
  const Recipe& recipe = recipe_of(parts.config);
  const auto wanted = recipe.head ? recipe.head(parts.config) : ScoreHeadWanted{};
  auto model = value_or_throw(
      load_starting_model(parts.device, parts.config.model, wanted,
                          static_cast<std::uint64_t>(parts.config.train.seed), tp_of(parts)));
  return std::make_unique<engine::train::Trainer>(std::move(model), options, parts.mesh);
}

// What critic.* says of its optimizer; all else is the run's.
engine::train::TrainerOptions critic_options(const RunConfig& config) {
  auto options = trainer_settings(config);
  const CriticConfig& c = config.critic;
  options.optimizer = {c.betas[0],     c.betas[1],      c.eps,
                       c.weight_decay, c.max_grad_norm, options.optimizer.rounding_seed};
  return options;
}

std::string critic_folder(const std::string& output) {
  return output + "/critic";
}

// The critic's checkpoint of the step of the policy's, which stands beside the folder `critic`.
std::string critic_checkpoint(const std::string& from) {
  const std::filesystem::path policy(from);
  const std::string critic =
      cat(critic_folder(policy.parent_path().string()), "/", policy.filename().string());
  if (auto whole = checkpoint::verify_checkpoint(critic); !whole)
    throw Failure(
        {whole.error().code, cat("the run goes on from ", from, ", whose critic must be in ",
                                 critic, ": ", whole.error().what,
                                 "; give resume a checkpoint that has both, or begin anew in "
                                 "another output directory")});
  return critic;
}

std::unique_ptr<engine::train::Trainer> load_critic(const RoleParts& parts) {
  const auto options = critic_options(parts.config);
  if (!parts.from.empty()) return resume_trainer(parts, critic_checkpoint(parts.from), options);
  const std::string source =
      parts.config.critic.model.empty() ? parts.config.model : parts.config.critic.model;
  // A fresh head is of zeros: every state is worth nothing at first.
  auto model = load_starting_model(parts.device, source, {.labels = 1}, 0, tp_of(parts));
  if (!model) throw Failure({model.error().code, cat("the critic: ", model.error().what)});
  return std::make_unique<engine::train::Trainer>(std::move(*model), options, parts.mesh);
}

// `source`: the model folder whose configuration and tokenizer a checkpoint gets.
roles::Saver saver(const RunConfig& config, const std::string& source,
                   std::shared_ptr<const checkpoint::DirectoryLock> output,
                   const engine::parallel::Mesh* mesh) {
  return [config, source, output = std::move(output), mesh](std::int64_t step, const Json& state,
                                                            engine::train::Trainer& trainer) {
    Json whole = Json::Object{};
    whole.set("algorithm", config.algorithm);
    whole.set("data", state);
    if (trainer.optimizer().steps() != step)
      whole.set("updates", static_cast<double>(trainer.optimizer().steps()));
    auto& optimizer = trainer.optimizer();
    const auto& spec = trainer.model().spec();
    const checkpoint::Snapshot snapshot{
        step,
        trainer.model().parameters().trained(),
        {.source = source, .tied = spec.tied},
        optimizer.exp_avg(),
        optimizer.exp_avg_sq(),
        std::move(whole),
        spec.lora ? adapter_writer(config, spec) : checkpoint::ModelWriter()};
    const checkpoint::WriteOptions options{.keep_last = static_cast<int>(config.train.keep_last)};
    if (mesh) return checkpoint::write_checkpoint(*mesh, output.get(), snapshot, options);
    return checkpoint::write_checkpoint(*output, snapshot, options);
  };
}

}  // namespace

roles::Trainer make_policy(const RoleParts& parts) {
  check((parts.output != nullptr) == (!parts.mesh || parts.mesh->leads()),
        "the leader of a policy, and nobody else, writes checkpoints");
  const std::shared_ptr<const checkpoint::DirectoryLock> kept(parts.output,
                                                              [](const auto*) {});  // the run's
  return roles::Trainer(load_trainer(parts), algorithms::losses(),
                        saver(parts.config, parts.config.model, kept, parts.mesh), parts.mesh);
}

roles::Trainer make_critic(const RoleParts& parts) {
  std::shared_ptr<const checkpoint::DirectoryLock> output;
  const std::string folder = critic_folder(parts.config.output);
  if (!parts.mesh || parts.mesh->leads()) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) throw Failure({Errc::io, cat(folder, ": cannot create: ", failed.message())});
    output = std::make_shared<const checkpoint::DirectoryLock>(
        checkpoint::DirectoryLock::held_by_launch(folder));
  }
  const std::string& source =
      parts.config.critic.model.empty() ? parts.config.model : parts.config.critic.model;
  return roles::Trainer(load_critic(parts), algorithms::losses(),
                        saver(parts.config, source, output, parts.mesh), parts.mesh);
}

roles::Scorer make_reference(const RoleParts& parts) {
  const std::string given = recipe_of(parts.config).reference(parts.config);
  if (roles_of(parts.config).reference_follows)
    return make_follower(parts, given.empty() ? parts.config.model : given);
  auto model = value_or_throw(checkpoint::load_decoder(
      parts.device, given.empty() ? parts.config.model : given, false, tp_of(parts)));
  return roles::Scorer(std::move(model), scoring_settings(parts.config), parts.mesh);
}

roles::Rollout make_rollout(const RoleParts& parts) {
  const auto spec = spec_of_run(parts.config, parts.from);
  auto settings = generator_settings(parts.config, spec);
  settings.decode = [text = parts.text](std::span<const std::int32_t> ids) {
    return text->decode(ids);
  };
  if (adapts(parts.config))
    return value_or_throw(roles::Rollout::create(load_adapted_decoder(parts), nullptr,
                                                 std::move(settings), parts.mesh));
  auto model = std::make_unique<engine::models::Decoder>(parts.device, spec, false, tp_of(parts));
  auto shadow = std::make_unique<engine::models::Decoder>(parts.device, spec, false, tp_of(parts));
  return value_or_throw(
      roles::Rollout::create(std::move(model), std::move(shadow), std::move(settings), parts.mesh));
}

roles::Verifier make_verifier(const RunConfig& config) {
  auto rules = value_or_throw(actors::rules::Rules::from_json(reward_rules(config), "reward"));
  value_or_throw(rules.start());
  return roles::Verifier(std::move(rules));
}

}  // namespace troupe::launch
