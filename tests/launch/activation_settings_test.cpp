// The settings of activations: which are recomputed, dropped and offloaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/text/text.h"
#include "launch/recipes/resolve.h"
#include "launch/run/settings.h"

namespace troupe::launch::activation_settings_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

Result<recipes::Resolved> with(std::vector<std::string> sets, bool check_files = false) {
  for (const char* path : {"model=M", "data.path=D", "output=O"}) sets.emplace_back(path);
  return recipes::resolve(
      {.algorithm = "sft", .sets = std::move(sets), .check_files = check_files});
}

TEST(ActivationSettings, RecomputationOfLayersNeedsFull) {
  const auto got = with({"train.recompute=[full]", "train.recompute_method=block",
                         "train.recompute_layers=3", "train.recompute_in_advance=true"});
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_TRUE(got->warnings.empty());
  const auto recomputed = run::trainer_settings(got->config).recomputed;
  EXPECT_TRUE(recomputed.has(engine::nn::Recompute::full) && recomputed.in_advance);
  EXPECT_EQ(recomputed.method, engine::nn::RecomputeMethod::block);
  EXPECT_EQ(recomputed.layers, 3);
  const auto alone = with({"train.recompute_layers=3"});
  ASSERT_TRUE(alone);
  EXPECT_THAT(alone->warnings, Contains(HasSubstr("only train.recompute: [full] recomputes")));
  const auto refused = with({"train.recompute_method=some"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("uniform, block"));
  EXPECT_FALSE(with({"train.recompute_layers=0"}));
}

TEST(ActivationSettings, DropoutIsAProbabilityBelowOne) {
  const auto got = with({"train.attention_dropout=0.1", "train.hidden_dropout=0.2",
                         "train.share_prefixes=true", "train.seed=5"});
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_THAT(got->warnings, Contains(HasSubstr("dropout masks the rows of a common prefix")));
  const auto options = run::trainer_settings(got->config);
  EXPECT_EQ(options.attention_dropout, 0.1);
  EXPECT_EQ(options.hidden_dropout, 0.2);
  EXPECT_EQ(options.optimizer.seed, 5u);
  for (const char* wrong : {"train.attention_dropout=1", "train.hidden_dropout=-0.1"})
    EXPECT_FALSE(with({wrong})) << wrong;
}

TEST(ActivationSettings, TheDirectoryOfOffloadIsOneThatCanBeCreated) {
  const auto got = with({"train.offload=/dev/null/at"}, true);
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().what, HasSubstr("train.offload: expected a directory in which files can "
                                          "be created, found \"/dev/null/at\""));
  const auto allowed = with({"train.offload=/tmp"});
  ASSERT_TRUE(allowed) << allowed.error().what;
  EXPECT_EQ(run::trainer_settings(allowed->config).offload, "/tmp");
}

}  // namespace
}  // namespace troupe::launch::activation_settings_test
