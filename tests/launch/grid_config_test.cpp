// The sections parallel and parallel.ROLE of a configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/text/text.h"
#include "launch/recipes/resolve.h"
#include "launch/recipes/role_grids.h"

namespace troupe::launch::grid_config_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Result<recipes::Resolved> with(std::vector<std::string> sets, std::string algorithm = "sft") {
  for (const char* each : {"model=M", "data.path=D", "output=O"}) sets.emplace_back(each);
  return recipes::resolve(
      {.algorithm = std::move(algorithm), .sets = std::move(sets), .check_files = false});
}

TEST(GridConfig, AGridOfMoreRanksThanAGroupCanHaveIsRefused) {
  const auto got = with({"parallel.tp=64", "parallel.dp=32"});
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().what, HasSubstr("parallel.dp = 32 (--set) x parallel.tp = 64 (--set)"));
  const auto none = with({"parallel.tp=0"});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().what, HasSubstr("parallel.tp = 0 (--set): must be at least 1, at most "
                                           "1024; the nearest valid value is 1"));
  EXPECT_TRUE(with({"parallel.tp=4", "parallel.dp=2"}));
  EXPECT_TRUE(with({"parallel.dp=2", "parallel.zero=1"}));
  for (const char* stage : {"parallel.zero=2", "parallel.zero=3"}) {
    const auto refused = with({stage});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().what, AllOf(HasSubstr("(--set): expected 0 or 1"),
                                            HasSubstr("parallel.tp"), HasSubstr("parallel.pp")));
  }
  EXPECT_TRUE(with({"parallel.pp=2", "parallel.layers=[3, 2]"}));
  const auto stages = [&](const std::string& more) {
    const auto refused = with({"parallel.pp=2", more});
    return refused ? std::string("taken") : refused.error().what;
  };
  EXPECT_THAT(stages("parallel.layers=[5]"), HasSubstr("expected 2 numbers, one for each stage"));
  EXPECT_THAT(stages("parallel.layers=[4.5, 0.5]"), HasSubstr("parallel.layers"));
  EXPECT_THAT(stages("parallel.noop_layers=[0.5]"),
              HasSubstr("a whole number is expected, found \"0.5\""));
  EXPECT_EQ(stages("parallel.noop_layers=[0, 4]"), "taken");
  EXPECT_THAT(stages("parallel.order=dp-tp"), HasSubstr("tp-cp-dp-pp, tp-cp-pp-dp"));
  EXPECT_EQ(stages("parallel.vpp=2"), "taken");
  EXPECT_TRUE(with({"parallel.pp=2", "parallel.vpp=2", "parallel.layers=[2, 1, 1, 1]"}));
  const auto few = with({"parallel.pp=2", "parallel.vpp=2", "parallel.layers=[3, 2]"});
  ASSERT_FALSE(few);
  EXPECT_THAT(few.error().what,
              HasSubstr("expected 4 numbers, one for each of the virtual stages"));
  const auto whole = with({"parallel.vpp=2"});
  ASSERT_FALSE(whole);
  EXPECT_THAT(whole.error().what, HasSubstr("needs a parallel.pp = 1 (default) of at least 2"));
  const auto alone = with({"parallel.noop_layers=[0]"});
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().what, HasSubstr("of at least 2, whose stages it shortens"));
}

TEST(GridConfig, AContextThatCannotBeDividedSoIsRefusedWithWhatCan) {
  const auto said = [&](const std::vector<std::string>& set) {
    const auto got = with(set);
    return got ? std::string("taken") : got.error().what;
  };
  const std::string hybrid = "parallel.cp_algorithm=hybrid";
  EXPECT_EQ(said({"parallel.cp=4"}), "taken");
  EXPECT_EQ(said({"parallel.cp=3", "parallel.cp_algorithm=ulysses"}), "taken");
  EXPECT_EQ(said({"parallel.cp=8", hybrid, "parallel.ulysses_degree=4"}), "taken");
  EXPECT_EQ(said({"parallel.cp=4", "parallel.cp_window=2"}), "taken");
  EXPECT_EQ(said({"parallel.cp=8", hybrid, "parallel.ulysses_degree=2", "parallel.cp_window=2"}),
            "taken");
  EXPECT_THAT(said({"parallel.cp=6", "parallel.cp_window=4"}),
              HasSubstr("one of 1, 2, 3, found 4"));
  EXPECT_THAT(said({"parallel.cp=4", "parallel.cp_window=4"}), HasSubstr("one of 1, 2, found 4"));
  EXPECT_THAT(said({"parallel.cp=4", "parallel.cp_algorithm=ulysses", "parallel.cp_window=2"}),
              HasSubstr("ulysses has no ring"));
  EXPECT_THAT(said({"parallel.cp=8", hybrid}), HasSubstr("expects one of 2, 4, found 0"));
  EXPECT_THAT(said({"parallel.cp=8", hybrid, "parallel.ulysses_degree=3"}),
              HasSubstr("expects one of 2, 4, found 3"));
  EXPECT_THAT(said({"parallel.cp=3", hybrid}), HasSubstr("use ring or ulysses"));
  EXPECT_THAT(said({"parallel.cp=4", "parallel.ulysses_degree=2"}),
              HasSubstr("only parallel.cp_algorithm: hybrid"));
  EXPECT_THAT(said({"parallel.cp=4", "parallel.cp_algorithm=rings"}), HasSubstr("ring, ulysses"));
}

TEST(GridConfig, GridsOfOtherModelsThanThePolicyAreChecked) {
  const auto said = [&](std::vector<std::string> set) {
    for (const char* each : {"reward=[{rule: exact_match}]", "grpo.beta=0.1"})
      set.emplace_back(each);
    const auto got = with(set, "grpo");
    return got ? std::string("taken") : got.error().what;
  };
  EXPECT_EQ(said({"parallel.rollout.tp=2", "parallel.rollout.pp=2", "parallel.rollout.vpp=2"}),
            "taken");
  EXPECT_EQ(said({"parallel.reference.cp=4", "parallel.reference.cp_algorithm=ulysses"}), "taken");
  EXPECT_THAT(said({"parallel.rollout.cp=2"}),
              HasSubstr("parallel.rollout.cp = 2 (--set): generation divides no sequence over "
                        "ranks; allowed: 1; divide the model with parallel.rollout.tp or "
                        "parallel.rollout.pp"));
  EXPECT_THAT(said({"parallel.rollout.tp=2", "parallel.rollout.sp=true"}),
              HasSubstr("parallel.rollout.sp = true (--set): generation divides no rows"));
  EXPECT_THAT(said({"parallel.reference.vpp=2"}),
              HasSubstr("parallel.reference.vpp = 2 (--set): needs a parallel.reference.pp = 1"));
  EXPECT_THAT(said({"parallel.reference.cp=4", "parallel.reference.cp_window=3"}),
              HasSubstr("parallel.reference.cp_window = 3 (--set): expected a divisor"));
  EXPECT_THAT(said({"parallel.reference.zero=2"}), HasSubstr("must be at least 0, at most 1"));
}

TEST(GridConfig, TheCriticHasWhatDividesNoModelFromThePolicy) {
  const auto critic = [](std::vector<std::string> set) {
    for (const char* each : {"reward=[{rule: exact_match}]", "parallel.zero=1", "parallel.dp=4"})
      set.emplace_back(each);
    return recipes::parallel_of(value_or_throw(with(set, "ppo")).config, recipes::Role::critic,
                                recipes::RankKind::processes);
  };
  EXPECT_EQ(critic({}).zero, 1);
  EXPECT_EQ(critic({}).dp, 4);
  EXPECT_EQ(critic({"parallel.critic.tp=2"}).zero, 1);
  EXPECT_EQ(critic({"parallel.critic.tp=2"}).dp, 2);
  EXPECT_EQ(critic({"parallel.critic.tp=2", "parallel.critic.zero=0"}).zero, 0);
}

TEST(GridConfig, AKeyOfAGridThatHasNoEffectIsWarnedOf) {
  const auto warnings = [](const std::string& set, const std::string& algorithm = "sft") {
    std::vector<std::string> all{set};
    if (algorithm == "ppo") all.emplace_back("reward=[{rule: exact_match}]");
    return join(value_or_throw(with(all, algorithm)).warnings, "; ");
  };
  EXPECT_THAT(warnings("parallel.rollout.tp=2"), HasSubstr("not used, the run has no rollout"));
  EXPECT_THAT(warnings("parallel.critic.pp=2"), HasSubstr("not used, the run has no critic"));
  EXPECT_THAT(warnings("parallel.critic.zero=1", "ppo"),
              HasSubstr("parallel.critic.zero = 1 (--set): not used, no other key"));
  EXPECT_THAT(warnings("parallel.critic.pp=2", "ppo"), Not(HasSubstr("parallel.critic")));
}

}  // namespace
}  // namespace troupe::launch::grid_config_test
