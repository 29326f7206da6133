#include "launch/run/run_context.h"

#include "actors/runtime/run.h"
#include "engine/base/text.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"
#include "launch/run/exit_code.h"

namespace troupe::launch {

engine::data::DataOptions Stage::data_options() const {
  return value_or_throw(data_settings(config(), session_.spec(), config().data.path));
}

algorithms::Cluster Stage::cluster() {
  const RolesNeeded roles = roles_of(config());
  std::optional<algorithms::ReferenceRef> reference;
  std::vector<algorithms::RolloutRef> rollouts;
  std::optional<algorithms::RewardRef> verifier;
  if (roles.reference.needed) reference = cast_.reference();
  if (base_is_reference(config())) reference = algorithms::ReferenceRef::base_of(cast_.policy());
  if (roles.rollout.needed) rollouts = cast_.rollouts();
  if (roles.verifier.needed) verifier = cast_.verifier();
  const std::chrono::seconds patience(config().train.patience);
  algorithms::Cluster cluster{cast_.policy(),
                              std::move(reference),
                              std::move(rollouts),
                              std::move(verifier),
                              journal_,
                              stop_,
                              cast_.pieces(),
                              patience};
  if (roles.critic.needed) cluster.critic = cast_.critic();
  if (roles.reward.needed) cluster.reward = cast_.reward();
  if (roles.reference_follows)
    cluster.follower.emplace(cluster.reference->asker(), cluster.reference->address());
  return cluster;
}

algorithms::Plan Stage::begin(std::int64_t batches, std::int64_t updates) {
  auto plan = value_or_throw(plan_settings(config(), batches, updates, session_.done()));
  journal_.begin(plan.steps, plan.done);
  return plan;
}

int Stage::drive(actors::Task<void> algorithm, const algorithms::Plan& plan) {
  if (plan.done >= plan.steps) {
    log_info(cat(config().output, ": all ", plan.steps,
                 " steps are done already; raise train.steps to go on"));
    return 0;
  }
  actors::run(cast_.node(), std::move(algorithm), &stop_);
  journal_.plot();
  return stop_.requested() ? exit_interrupted : 0;
}

int conduct(const Session& session, const TextModel& text, Cast& cast, RunJournal& journal,
            const actors::Stop& stop) {
  Stage stage(session, text, cast, journal, stop);
  return recipe_of(session.config()).run(stage);
}

}  // namespace troupe::launch
