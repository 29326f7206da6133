#include "launch/run/measured_run.h"

#include "engine/base/environment/processors.h"
#include "engine/base/text/text.h"
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

namespace troupe::launch::run {

namespace {

using algorithms::PassModel;

std::vector<journal::StepPart> parts_of(const config::RunConfig& config,
                                        const recipes::RolesNeeded& roles) {
  std::vector<journal::StepPart> parts{journal::StepPart::update, journal::StepPart::save};
  const auto add = [&](bool has, journal::StepPart part) {
    if (has) parts.push_back(part);
  };
  add(roles.rollout.needed, journal::StepPart::rollout);
  add(roles.rollout.needed || roles.reference_follows, journal::StepPart::weights);
  add(roles.rollout.needed, journal::StepPart::advantage);
  add(roles.reference.needed || recipes::base_is_reference(config), journal::StepPart::reference);
  add(roles.verifier.needed || roles.reward.needed, journal::StepPart::reward);
  add(roles.critic.needed, journal::StepPart::update_critic);
  add(!config.eval.path.empty(), journal::StepPart::eval);
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
double layers_again(const config::RunConfig& config, const engine::nn::Recomputed& recomputed,
                    const engine::models::DecoderSpec& spec) {
  std::size_t again = 0;
  for (const auto layers : value_or_throw(
           engine::models::stage_layers(spec, config.parallel.pp, config.parallel.layers,
                                        config.parallel.noop_layers, config.parallel.vpp)))
    for (const auto& group : engine::nn::layer_groups(recomputed, static_cast<std::size_t>(layers)))
      if (group.recomputed) again += group.end - group.begin;
  return static_cast<double>(again) / static_cast<double>(spec.layers);
}

profile::PassCounter counter_of(const config::RunConfig& config, const recipes::RolesNeeded& roles,
                                const engine::models::DecoderSpec& policy) {
  profile::CountedModel trained = profile::counted(policy);
  if (recipes::adapts(config)) trained.backward = 1;
  std::map<PassModel, profile::CountedModel> models{{PassModel::policy, trained}};
  const recipes::Recipe& recipe = recipes::recipe_of(config);
  if (roles.reference.needed && recipe.reference)
    if (const auto forward = forward_of(recipes::reference_folders(config).model))
      models.emplace(PassModel::reference, profile::CountedModel{*forward});
  if (roles.critic.needed) {
    auto forward = forward_of(config.critic.model).value_or(trained.forward);
    forward.head = 2 * static_cast<double>(policy.width);  // one value per token
    models.emplace(PassModel::critic, profile::CountedModel{forward});
  }
  if (roles.reward.needed) {
    engine::models::ForwardFlops sum;
    for (const recipes::RewardItem& item : value_or_throw(recipes::reward_items(config))) {
      const auto each = forward_of(item.path()).value_or(trained.forward);
      sum.layers += each.layers;
      sum.attention += each.attention;
      sum.head += each.head;
    }
    models.emplace(PassModel::reward, profile::CountedModel{sum});
  }
  const engine::nn::Recomputed& recomputed = config.train.recomputed;
  return profile::PassCounter(std::move(models), recomputed,
                              layers_again(config, recomputed, policy));
}

// Processors that the policy's ranks may use.
int processors_of(const config::RunConfig& config) {
  const int all =
      transports::mpi::under_mpirun() ? engine::all_processors() : engine::usable_processors();
  const std::int64_t ranks = config.parallel.ranks(), threads = config.train.threads;
  return threads > 0 ? static_cast<int>(std::min<std::int64_t>(all, threads * ranks)) : all;
}

}  // namespace

journal::Measured measured_run(const config::RunConfig& config,
                               const engine::models::DecoderSpec& policy) {
  const recipes::RolesNeeded roles = recipes::roles_of(config);
  journal::Measured out{.parts = parts_of(config, roles)};
  out.flops = [counter = counter_of(config, roles, policy)](const algorithms::ModelPass& pass) {
    const profile::PassFlops flops = counter(pass);
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

}  // namespace troupe::launch::run
