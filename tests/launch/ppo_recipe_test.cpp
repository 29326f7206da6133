// The ppo recipe: compat presets match the tools, contradictions are reported with what would be
// valid, and the formula contains the run's numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/text/text.h"
#include "launch/recipes/ppo.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/resolve.h"

namespace troupe::launch::ppo_recipe_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Result<recipes::Resolved> with(std::vector<std::string> sets = {}) {
  for (const char* needed : {"model=M", "data.path=D", "output=O", "reward=exact_match"})
    sets.insert(sets.begin(), needed);
  return recipes::resolve(
      {.algorithm = "ppo", .file = "", .sets = std::move(sets), .check_files = false});
}
algorithms::PpoConfig settings(std::vector<std::string> sets = {}) {
  return value_or_throw(recipes::ppo_settings(value_or_throw(with(std::move(sets))).config));
}
std::string refusal(std::vector<std::string> sets) {
  const auto got = with(std::move(sets));
  return got ? "accepted" : got.error().what;
}
std::vector<std::string> warnings(std::vector<std::string> sets) {
  return value_or_throw(with(std::move(sets))).warnings;
}

TEST(PpoRecipe, DefaultsAreTrls) {
  const auto p = settings();
  EXPECT_EQ(p.epochs, 4);
  EXPECT_EQ(p.gae.lambda, 0.95);
  EXPECT_EQ(p.kl_coef, 0.05);
  EXPECT_EQ(p.kl_place, algorithms::KlPlace::reward);
  EXPECT_EQ(p.value.clip, 0.2);
  EXPECT_EQ(p.policy.surrogate.dual_clip, 0);
}

TEST(PpoRecipe, CompatPresetsAreTheToolsDefaults) {
  EXPECT_EQ(settings({"compat=trl"}).place, algorithms::ScorePlace::after_end);
  EXPECT_EQ(settings({"compat=trl"}).value.coef, 0.1);
  const auto verl = settings({"compat=verl"});
  EXPECT_EQ(verl.policy.surrogate.dual_clip, 3);
  EXPECT_EQ(verl.kl_coef, 0);
  EXPECT_EQ(verl.value.clip, 0.5);
  const auto openrlhf = settings({"compat=openrlhf"});
  EXPECT_EQ(openrlhf.variance, algorithms::Variance::biased);
  EXPECT_EQ(openrlhf.gae.untrained, algorithms::Untrained::zero);
  EXPECT_EQ(openrlhf.score.clip, 10);
  EXPECT_EQ(settings({"compat=mindspeed"}).place, algorithms::ScorePlace::after_end);
}

TEST(PpoRecipe, TrapsAreRefusedInWords) {
  EXPECT_THAT(refusal({"ppo.kl_coef=0", "ppo.kl_schedule=adaptive"}),
              HasSubstr("which is 0 and stays 0"));
  EXPECT_THAT(refusal({"ppo.kl=k3+"}), HasSubstr("ppo.kl_place to loss"));
  EXPECT_THAT(refusal({"train.steps=8", "critic.warmup_rounds=2"}),
              HasSubstr("at most 1 is possible"));
  EXPECT_THAT(refusal({"critic.learning_rate=0"}), HasSubstr("would keep them"));
  EXPECT_THAT(refusal({"ppo.gamma=0", "ppo.lambda=0"}),
              HasSubstr("would reach no token but the last"));
  EXPECT_THAT(refusal({"rollout.temperature=0"}), HasSubstr("rollout.temperature"));
}

TEST(PpoRecipe, WhatIsNotUsedOrCutIsWarnedOf) {
  EXPECT_THAT(warnings({"ppo.kl_coef=0", "ppo.kl=k3"}), Contains(HasSubstr("ppo.kl_coef is 0")));
  EXPECT_THAT(warnings({"ppo.kl_target=3"}), Contains(HasSubstr("ppo.kl_schedule is fixed")));
  EXPECT_THAT(warnings({"train.steps=10"}), Contains(HasSubstr("8 or 12 would use it fully")));
  EXPECT_THAT(warnings({"ppo.truncated=value", "ppo.missing_eos_penalty=1"}),
              Contains(HasSubstr("penalized for its truncation")));
  EXPECT_THAT(warnings({"ppo.kl_place=loss"}),
              Contains(HasSubstr("the gradient of k1 is zero on average")));
  EXPECT_THAT(warnings({"train.steps=12"}), Not(Contains(HasSubstr("would use it fully"))));
}

TEST(PpoRecipe, TheRolesAreThoseThatTheSettingsNeed) {
  const auto roles = recipes::roles_of(value_or_throw(with()).config);
  EXPECT_TRUE(roles.critic.needed && roles.reference.needed && roles.rollout.needed &&
              roles.verifier.needed);
  EXPECT_FALSE(roles.reward.needed);
  EXPECT_FALSE(recipes::roles_of(value_or_throw(with({"ppo.kl_coef=0"})).config).reference.needed);
}

TEST(PpoRecipe, RolloutsInInt8HaveThePolicyRecomputeLogProbabilities) {
  EXPECT_FALSE(settings().recompute_old);
  EXPECT_TRUE(settings({"rollout.weights=int8"}).recompute_old);
}

TEST(PpoRecipe, SamplesOfOlderWeightsAreCorrected) {
  EXPECT_FALSE(settings({"async.mode=pinned", "async.eta=0"}).policy.correction.any());
  for (const char* each : {"pinned", "free"}) {
    const std::string mode = each;
    const auto stale = settings({"async.mode=" + mode, "async.eta=1"});
    EXPECT_TRUE(stale.recompute_old);
    EXPECT_EQ(stale.policy.correction.weight, algorithms::Over::token);
    EXPECT_EQ(stale.policy.correction.high, 2);
    const auto own =
        settings({"async.mode=" + mode, "ppo.correction=geometric", "ppo.correction_high=5"});
    EXPECT_TRUE(own.recompute_old);
    EXPECT_EQ(own.policy.correction.weight, algorithms::Over::geometric);
    EXPECT_EQ(own.policy.correction.high, 5);
    EXPECT_FALSE(settings({"async.mode=" + mode, "ppo.recompute_old_logp=false"}).recompute_old);
  }
  const auto config = value_or_throw(with({"async.mode=free"})).config;
  EXPECT_THAT(recipes::recipe_of(config).formula(config),
              HasSubstr("w = p_old(t) / p_rollout(t) over the token, truncate outside 0 and 2"));
}

TEST(PpoRecipe, ReportsACorrectionWithoutEffect) {
  EXPECT_THAT(warnings({"ppo.correction=token"}),
              Contains(HasSubstr("ppo.recompute_old_logp = true recomputes them")));
  EXPECT_THAT(warnings({"ppo.filter_low=0.1"}), Contains(HasSubstr("ppo.filter is none")));
  EXPECT_THAT(refusal({"ppo.correction=token", "ppo.correction_low=3", "ppo.correction_high=2"}),
              HasSubstr("ppo.correction: expected 0 <= correction_low < correction_high"));
}

TEST(PpoRecipe, TheFormulaHasTheRunsNumbers) {
  const auto config =
      value_or_throw(with({"ppo.kl_coef=0.07", "ppo.lambda=0.9", "critic.value_clip=0.3"})).config;
  const auto text = recipes::recipe_of(config).formula(config);
  EXPECT_THAT(text, HasSubstr("0.07"));
  EXPECT_THAT(text, HasSubstr("0.9"));
  EXPECT_THAT(text, HasSubstr("V_old - 0.3"));
}

TEST(PpoRecipe, TheCriticHasARateAndAScheduleOfItsOwn) {
  const auto config = value_or_throw(with({"critic.learning_rate=0.02", "critic.schedule=linear",
                                           "critic.warmup_steps=10", "train.steps=100"}))
                          .config;
  const auto plan = value_or_throw(recipes::critic_plan(config, 100));
  EXPECT_EQ(plan.learning_rate, 0.02);
  EXPECT_LT(plan.schedule(1), plan.schedule(9));
  EXPECT_GT(plan.schedule(20), plan.schedule(90));
}

}  // namespace
}  // namespace troupe::launch::ppo_recipe_test
