// Presets: algorithms that are settings of another, and the defaults of other tools. The user's
// settings override them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/base/text/text.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/resolve.h"
#include "launch/recipes/reward_model.h"

namespace troupe::launch::presets_test {
namespace {

using testing::HasSubstr;

Result<recipes::Resolved> with(const std::string& algorithm, std::vector<std::string> sets = {}) {
  for (const char* needed : {"model=M", "data.path=D", "output=O", "reward=exact_match"})
    sets.insert(sets.begin(), needed);
  return recipes::resolve(
      {.algorithm = algorithm, .file = "", .sets = std::move(sets), .check_files = false});
}

TEST(Presets, AnAlgorithmThatIsASettingOfAnotherChangesItsDefaults) {
  const auto got = with("dr_grpo");
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->config.algorithm, "dr_grpo");
  EXPECT_EQ(got->config.grpo.advantage.scale, algorithms::GroupScale::none);
  EXPECT_EQ(got->origins.at("grpo.scale_rewards"), "algorithm dr_grpo");
  EXPECT_EQ(recipes::recipe_of(got->config).name, "grpo");
}

TEST(Presets, TheUsersSettingsOverrideAPreset) {
  const auto got = with("dr_grpo", {"grpo.scale_rewards=batch"});
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->config.grpo.advantage.scale, algorithms::GroupScale::batch);
  EXPECT_EQ(got->origins.at("grpo.scale_rewards"), "--set");
}

TEST(Presets, TheAlgorithmsPresetOverridesCompat) {
  const auto got = with("dr_grpo", {"compat=verl"});
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_FALSE(got->config.grpo.loss.kl_times_ratio);
  EXPECT_EQ(got->origins.at("grpo.kl_times_ratio"), "compat verl");
  EXPECT_EQ(got->config.grpo.loss.aggregation, algorithms::Aggregation::constant);
}

TEST(Presets, EachOneResolvesAndComesBackFromItsOwnFile) {
  for (const recipes::Preset& preset : recipes::algorithm_presets()) {
    ASSERT_NE(recipes::find_recipe(preset.of), nullptr) << preset.name;
    const auto got = with(std::string(preset.name));
    ASSERT_TRUE(got) << preset.name << ": " << got.error().what;
    const std::string yaml = recipes::to_yaml(got->config);
    const auto again = recipes::config_of(yaml, "config.yaml");
    ASSERT_TRUE(again) << preset.name << ": " << again.error().what;
    EXPECT_EQ(recipes::to_yaml(*again), yaml) << preset.name;
  }
}

TEST(Presets, EveryCompatPresetResolvesForItsRecipe) {
  for (const recipes::Preset& tool : recipes::compat_presets()) {
    const auto got = with(std::string(tool.of), {cat("compat=", tool.name)});
    ASSERT_TRUE(got) << tool.name << " of " << tool.of << ": " << got.error().what;
    for (const auto& [key, value] : tool.values)
      EXPECT_EQ(got->origins.at(std::string(key)), cat("compat ", tool.name)) << key;
  }
}

TEST(Presets, CompatTrlComputesProcessRewardModelsInFloat32) {
  const auto in_float32 = [](const std::vector<std::string>& settings) {
    const auto got = with("prm", settings);
    return value_or_throw(recipes::prm_settings(value_or_throw(got).config, {})).float32;
  };
  EXPECT_TRUE(in_float32({"compat=trl"}));
  EXPECT_FALSE(in_float32({"compat=trl", "prm.float32=false"}));
  EXPECT_FALSE(in_float32({}));
}

TEST(Presets, AMethodHasTheLearningRateOfItsConvention) {
  const auto rate = [](const std::string& algorithm, std::vector<std::string> sets = {}) {
    return value_or_throw(with(algorithm, std::move(sets))).config.train.learning_rate;
  };
  EXPECT_EQ(rate("sft"), 2e-5);
  for (const char* algorithm : {"dpo", "simpo", "cpo", "kto", "ppo", "grpo", "dapo", "rloo"})
    EXPECT_EQ(rate(algorithm), 1e-6) << algorithm;
  EXPECT_EQ(rate("orpo"), 8e-6);
  EXPECT_EQ(rate("sft", {"lora.rank=8"}), 2e-4);
  EXPECT_EQ(rate("dpo", {"lora.rank=8"}), 1e-5);
  EXPECT_EQ(rate("dpo", {"compat=openrlhf"}), 9e-6);
  EXPECT_EQ(rate("dpo", {"lora.rank=8", "train.learning_rate=3e-4"}), 3e-4);
}

TEST(Presets, TheOriginOfAMethodsDefaultIsNamed) {
  const auto origin = [](const std::string& algorithm, std::vector<std::string> sets = {}) {
    return value_or_throw(with(algorithm, std::move(sets))).origins.at("train.learning_rate");
  };
  EXPECT_EQ(origin("dpo"), "default for dpo");
  EXPECT_EQ(origin("dapo"), "default for grpo");
  EXPECT_EQ(origin("sft", {"lora.rank=8"}), "default for sft with an adapter");
  EXPECT_EQ(origin("dpo", {"compat=trl"}), "compat trl");
  EXPECT_EQ(value_or_throw(with("sft")).origins.at("train.eps"), "default");
}

TEST(Presets, EveryMethodHasADefaultLearningRateWithASource) {
  for (const recipes::Recipe& recipe : recipes::recipes()) {
    bool rate = false;
    for (const recipes::MethodDefault& each : recipes::method_defaults(recipe.name)) {
      EXPECT_NE(config::find_field(each.key), nullptr) << each.key;
      EXPECT_FALSE(each.source.empty()) << recipe.name;
      rate = rate || each.key == "train.learning_rate";
    }
    EXPECT_TRUE(rate) << recipe.name;
  }
}

TEST(Presets, NoNameStandsForTwoAlgorithms) {
  const auto names = recipes::algorithm_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(Presets, AnUnknownAlgorithmGetsTheNearestKnownOne) {
  const auto got = with("gropo");
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().what, HasSubstr("did you mean grpo?"));
}

TEST(Presets, CompatWithoutAPresetForTheRecipeWarns) {
  const auto got = with("sft", {"compat=openrlhf"});
  ASSERT_TRUE(got) << got.error().what;
  ASSERT_FALSE(got->warnings.empty());
  EXPECT_THAT(testing::PrintToString(got->warnings), HasSubstr("changes no default of sft"));
}

}  // namespace
}  // namespace troupe::launch::presets_test
