#include "launch/run/measured_run.h"

#include "engine/base/processors.h"
#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/models/stages.h"
#include "engine/nn/layers.h"
#include "engine/ops/cpu/instruction_peak.h"
#include "launch/profile/pass_flops.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/rewards.h"
#include "launch/run/settings.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch {

namespace {

using algorithms::PassModel;

std::vector<Part> parts_of(const RunConfig& config, const RolesNeeded& roles) {
  std::vector<Part> parts{Part::update, Part::save};
  const auto add = [&](bool has, Part part) {
    if (has) parts.push_back(part);
  };
  add(roles.rollout.needed, Part::rollout);
  add(roles.rollout.needed || roles.reference_follows, Part::weights);
  add(roles.rollout.needed, Part::advantage);
  add(roles.reference.needed || base_is_reference(config), Part::reference);
  add(roles.verifier.needed || roles.reward.needed, Part::reward);
  add(roles.critic.needed, Part::update_critic);
  add(!config.eval.path.empty(), Part::eval);
  return parts;
}

// The forward pass of a model in a folder.
std::optional<engine::models::ForwardFlops> forward_of(const std::string& folder) {
  if (folder.empty()) return std::nullopt;
  const auto spec = engine::checkpoint::read_folder_spec(folder);
  if (!spec) return std::nullopt;
  return engine::models::forward_flops(*spec);
}

// Share of the layers that are recomputed.
double layers_again(const RunConfig& config, const engine::nn::Recomputed& recomputed,
                    const engine::models::DecoderSpec& spec) {
  std::size_t again = 0;
  for (const auto layers : value_or_throw(engine::models::stage_layers(
           spec, static_cast<int>(config.parallel.pp), layers_of_stages(config),
           noop_layers(config), static_cast<int>(config.parallel.vpp))))
    for (const auto& group : engine::nn::layer_groups(recomputed, static_cast<std::size_t>(layers)))
      if (group.recomputed) again += group.end - group.begin;
  return static_cast<double>(again) / static_cast<double>(spec.layers);
}

PassCounter counter_of(const RunConfig& config, const RolesNeeded& roles,
                       const engine::models::DecoderSpec& policy) {
  CountedModel trained = counted(policy);
  if (adapts(config)) trained.backward = 1;
  std::map<PassModel, CountedModel> models{{PassModel::policy, trained}};
  const Recipe& recipe = recipe_of(config);
  if (roles.reference.needed && recipe.reference)
    if (const auto forward = forward_of(reference_folders(config).model))
      models.emplace(PassModel::reference, CountedModel{*forward});
  if (roles.critic.needed) {
    auto forward = forward_of(config.critic.model).value_or(trained.forward);
    forward.head = 2 * static_cast<double>(policy.width);  // one value per token
    models.emplace(PassModel::critic, CountedModel{forward});
  }
  if (roles.reward.needed) {
    engine::models::ForwardFlops sum;
    for (const RewardItem& item : value_or_throw(reward_items(config))) {
      const auto each = forward_of(item.path()).value_or(trained.forward);
      sum.layers += each.layers;
      sum.attention += each.attention;
      sum.head += each.head;
    }
    models.emplace(PassModel::reward, CountedModel{sum});
  }
  const auto recomputed = recomputed_settings(config);
  return PassCounter(std::move(models), recomputed, layers_again(config, recomputed, policy));
}

// Processors that the policy's ranks may use.
int processors_of(const RunConfig& config) {
  const int all =
      transports::mpi::under_mpirun() ? engine::all_processors() : engine::usable_processors();
  const std::int64_t ranks = policy_grid(config).ranks(), threads = config.train.threads;
  return threads > 0 ? static_cast<int>(std::min<std::int64_t>(all, threads * ranks)) : all;
}

}  // namespace

Measured measured_run(const RunConfig& config, const engine::models::DecoderSpec& policy) {
  const RolesNeeded roles = roles_of(config);
  Measured out{.parts = parts_of(config, roles)};
  out.flops = [counter = counter_of(config, roles, policy)](const algorithms::ModelPass& pass) {
    const PassFlops flops = counter(pass);
    return std::pair(flops.model, flops.hardware);
  };
  out.peak_tflops = config.train.peak_tflops;
  out.peak_source = "train.peak_tflops";
  if (out.peak_tflops > 0) return out;
  const int processors = processors_of(config);
  engine::ops::InstructionPeak peak(processors, config.train.dtype);
  peak.measure(200'000);
  out.peak_tflops = peak.best() * 1e-12;
  out.peak_source =
      cat("measured: multiply-add instructions on ", processors,
          processors == 1 ? " processor in " : " processors in ", name_of(config.train.dtype));
  return out;
}

}  // namespace troupe::launch
