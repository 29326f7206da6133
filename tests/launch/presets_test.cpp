// Presets: algorithms that are settings of another, and tools' defaults. They are defaults: what a
// person says wins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/base/text.h"
#include "launch/config/resolve.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/rewards/prm.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;

Result<Resolved> with(const std::string& algorithm, std::vector<std::string> sets = {}) {
  for (const char* needed : {"model=M", "data.path=D", "output=O", "reward=exact_match"})
    sets.insert(sets.begin(), needed);
  return resolve(
      {.algorithm = algorithm, .file = "", .sets = std::move(sets), .check_files = false});
}

TEST(Presets, AnAlgorithmThatIsASettingOfAnotherChangesItsDefaults) {
  const auto got = with("dr_grpo");
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->config.algorithm, "dr_grpo");
  EXPECT_EQ(got->config.grpo.scale_rewards, "none");
  EXPECT_EQ(got->origins.at("grpo.scale_rewards"), "algorithm dr_grpo");
  EXPECT_EQ(recipe_of(got->config).name, "grpo");
}

TEST(Presets, WhatAPersonSaysWinsOverAPreset) {
  const auto got = with("dr_grpo", {"grpo.scale_rewards=batch"});
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->config.grpo.scale_rewards, "batch");
  EXPECT_EQ(got->origins.at("grpo.scale_rewards"), "--set");
}

TEST(Presets, ADialectGivesWayToTheAlgorithm) {
  const auto got = with("dr_grpo", {"dialect=verl"});
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_FALSE(got->config.grpo.kl_times_ratio);
  EXPECT_EQ(got->origins.at("grpo.kl_times_ratio"), "dialect verl");
  EXPECT_EQ(got->config.grpo.aggregation, "dr_grpo");
}

TEST(Presets, EachOneResolvesAndComesBackFromItsOwnFile) {
  for (const Preset& preset : algorithm_presets()) {
    ASSERT_NE(find_recipe(preset.of), nullptr) << preset.name;
    const auto got = with(std::string(preset.name));
    ASSERT_TRUE(got) << preset.name << ": " << got.error().what;
    const std::string yaml = to_yaml(got->config);
    const auto again = config_of(yaml, "config.yaml");
    ASSERT_TRUE(again) << preset.name << ": " << again.error().what;
    EXPECT_EQ(to_yaml(*again), yaml) << preset.name;
  }
}

TEST(Presets, EveryDialectResolvesForItsRecipe) {
  for (const Preset& dialect : dialects()) {
    const auto got = with(std::string(dialect.of), {cat("dialect=", dialect.name)});
    ASSERT_TRUE(got) << dialect.name << " of " << dialect.of << ": " << got.error().what;
    for (const auto& [key, value] : dialect.values)
      EXPECT_EQ(got->origins.at(std::string(key)), cat("dialect ", dialect.name)) << key;
  }
}

TEST(Presets, TheProcessModelsOfTrlsDialectAreJudgedInItsArithmetic) {
  const auto in_float32 = [](const std::vector<std::string>& settings) {
    const auto got = with("prm", settings);
    return value_or_throw(prm_settings(value_or_throw(got).config, {})).float32;
  };
  EXPECT_TRUE(in_float32({"dialect=trl"}));
  EXPECT_FALSE(in_float32({"dialect=trl", "prm.float32=false"}));
  EXPECT_FALSE(in_float32({}));
}

TEST(Presets, NoNameStandsForTwoAlgorithms) {
  const auto names = algorithm_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(Presets, AnUnknownAlgorithmIsToldTheNearestKnownOne) {
  const auto got = with("gropo");
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().what, HasSubstr("did you mean grpo?"));
}

TEST(Presets, ADialectThatARecipeDoesNotKnowIsWarnedOf) {
  const auto got = with("sft", {"dialect=verl"});
  ASSERT_TRUE(got) << got.error().what;
  ASSERT_FALSE(got->warnings.empty());
  EXPECT_THAT(testing::PrintToString(got->warnings), HasSubstr("nothing is changed by it"));
}

}  // namespace
}  // namespace troupe::launch
