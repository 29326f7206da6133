// HealthMonitor warns once when a known failure occurs.
#include "algorithms/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace troupe::algorithms {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> check_steps(HealthMonitor& monitor, const std::string& metric,
                                     const std::vector<double>& values, std::int64_t first = 1) {
  std::vector<std::string> all;
  for (const double value : values)
    for (auto& warning : monitor.check(first++, {{metric, value}}))
      all.push_back(std::move(warning));
  return all;
}

/// Entropy falls to 2 % within 40 steps; the reward of a step is reward(step).
template <class Reward>
std::vector<std::string> collapse(std::int64_t steps, Reward&& reward) {
  HealthMonitor monitor("grpo");
  std::vector<std::string> all;
  for (std::int64_t step = 1; step <= steps; ++step) {
    const double t = static_cast<double>(step), entropy = 0.306 * std::max(0.02, 1 - t / 40);
    // The entropy of a batch varies by more than the distance to the bound.
    const double varied = entropy * (step % 7 == 0 ? 4 : 1);
    for (auto& warning :
         monitor.check(step, {{"entropy", varied}, {"reward", reward(t)}, {"grad_norm", 1}}))
      all.push_back(std::move(warning));
  }
  return all;
}

TEST(HealthMonitor, SaysOnceThatEntropyCollapsed) {
  EXPECT_THAT(
      collapse(400, [](double t) { return 0.5 + 0.05 * std::sin(t) - 0.001 * std::min(t, 100.0); }),
      ElementsAre(AllOf(HasSubstr("entropy collapsed to 0.0"), HasSubstr("% of its initial 0.298)"),
                        HasSubstr("grpo.clip_high = 0.28"), HasSubstr("grpo.beta"))));
}

TEST(HealthMonitor, LowEntropyIsNoFailureWhileTheRewardRises) {
  const auto learns = [](double t) { return 1 - 0.5 * std::exp(-t / 60) + 0.02 * std::sin(t); };
  EXPECT_THAT(collapse(400, learns), IsEmpty());
  EXPECT_THAT(collapse(400, [](double t) { return std::min(1.0, 0.5 + t / 60); }), IsEmpty())
      << "the reward stays at its best";
  EXPECT_EQ(collapse(400, [&](double t) { return t < 100 ? learns(t) : 0.2; }).size(), 1u)
      << "the reward is lost again";
}

TEST(HealthMonitor, SaysOnceThatSamplesAreTooOld) {
  const auto warnings = [](double staleness, double beyond, double difference) {
    HealthMonitor monitor("grpo");
    std::vector<std::string> all;
    for (std::int64_t step = 1; step <= 20; ++step)
      for (auto& warning :
           monitor.check(step, {{"sampling/is_oob_ratio", beyond},
                                {"sampling/sampling_logp_difference/mean", difference},
                                {"staleness/max", staleness}}))
        all.push_back(std::move(warning));
    return all;
  };
  EXPECT_THAT(
      warnings(2, 0.25, 0.5),
      ElementsAre(AllOf(HasSubstr("step 3: "), HasSubstr("is_oob_ratio is 0.25 for 3 steps"),
                        HasSubstr("a lower async.eta"))));
  EXPECT_THAT(warnings(2, 0.01, 0.5), ElementsAre(HasSubstr("logp_difference/mean is 0.5")));
  EXPECT_THAT(warnings(2, 0.01, 0.05), IsEmpty());
  EXPECT_THAT(warnings(0, 0.25, 0.5), IsEmpty()) << "the samples are those of the policy";
}

TEST(HealthMonitor, NumbersHaveThreeDigits) {
  HealthMonitor monitor("ppo");
  EXPECT_THAT(check_steps(monitor, "objective/kl", {1, 123.456789, 123.456789, 123.456789}),
              ElementsAre("step 4: the KL divergence from the reference is 123 for 3 steps: the "
                          "policy may exploit the reward. Read samples.txt; consider a higher "
                          "ppo.kl_coef or a lower train.learning_rate"));
}

TEST(HealthMonitor, AnEpisodeEndsWhenTheMetricIsWellWithinItsBound) {
  HealthMonitor monitor("grpo");
  EXPECT_EQ(check_steps(monitor, "ppo_kl", {0.3, 0.3, 0.3, 0.19, 0.3, 0.3, 0.3, 0.1, 0.3, 0.3, 0.3})
                .size(),
            1u)
      << "within the bound for one step only";
  EXPECT_EQ(check_steps(monitor, "ppo_kl", {0.1, 0.1, 0.1, 0.3, 0.3, 0.3}, 12).size(), 1u);
  EXPECT_THAT(check_steps(monitor, "kl", {0.1, 2, 3, 0.5, 4, 5}), IsEmpty())
      << "never three steps in a row";
}

TEST(HealthMonitor, SaysThatGroupsAreAllEqualThatTokensAreClippedAndThatNothingIsLearned) {
  const auto first = [](const std::string& metric, const std::vector<double>& values) {
    HealthMonitor monitor("grpo");
    return check_steps(monitor, metric, values);
  };
  EXPECT_THAT(first("frac_reward_zero_std", std::vector<double>(10, 0.95)),
              ElementsAre(HasSubstr("95 % of the groups have equal rewards for 10 steps")));
  EXPECT_THAT(first("clip_ratio/region_mean", {0.6, 0.7, 0.8}),
              ElementsAre(HasSubstr("80 % of the tokens are clipped")));
  EXPECT_THAT(first("grad_norm", {0, 0, 0}),
              ElementsAre(HasSubstr(
                  "step 3: zero gradient for 3 steps: all rewards in each group are equal")));
  EXPECT_THAT(first("grad_norm", {1e-9, 1e-9, 1e-9}), IsEmpty());
  HealthMonitor sft("sft");
  EXPECT_THAT(check_steps(sft, "grad_norm", {0, 0, 0}), ElementsAre(Not(HasSubstr("rewards"))));
}

TEST(HealthMonitor, OneCauseGivesOneWarning) {
  HealthMonitor monitor("grpo");
  std::vector<std::string> all;
  for (std::int64_t step = 1; step <= 40; ++step) {
    // After step 12 all groups are equal: no token is trained on, and there is no entropy.
    Metrics metrics{{"reward", 0.3},
                    {"grad_norm", step > 12 ? 0 : 1},
                    {"frac_reward_zero_std", step > 12 ? 1 : 0.5}};
    if (step <= 12) metrics.emplace_back("entropy", step <= 10 ? 1 : 0.01);
    metrics.emplace_back("completions/clipped_ratio", step > 12 ? 1 : 0);
    for (auto& warning : monitor.check(step, metrics)) all.push_back(std::move(warning));
  }
  EXPECT_THAT(all, ElementsAre(HasSubstr("entropy collapsed to 0.01 (1 % of its initial 1)")));
}

TEST(HealthMonitor, ReportsDivergenceOnceForEveryMethod) {
  HealthMonitor sft("sft");
  EXPECT_THAT(check_steps(sft, "loss", {3.4,  3.3, 3.2, 3.2, 3.1, 3, 40, 500, 3000, 5000, 5784,
                                        5784, 3,   3,   3,   3,   3, 60, 60,  60,   60,   60}),
              ElementsAre(AllOf(HasSubstr("step 11: loss rose to 5.78e+03, its best was 3.16"),
                                HasSubstr("train.learning_rate"))));
  HealthMonitor at_once("sft");
  EXPECT_THAT(check_steps(at_once, "loss", {3.4, 900, 5000, 5784, 4000, 3000, 2000}),
              ElementsAre(HasSubstr("step 6: loss rose to 3e+03, its best was 3.4")));
  HealthMonitor noisy("dpo");
  EXPECT_THAT(check_steps(noisy, "loss",
                          {0.69, 0.6, 0.5, 0.2, 0.1, 0.05, 0.6, 0.02, 0.3, 0.01, 0.7, 0.5, 0.4}),
              IsEmpty());
  HealthMonitor dpo("dpo");
  EXPECT_THAT(check_steps(dpo, "logps/chosen",
                          {-90, -95, -92, -88, -91, -120, -200, -400, -900, -6881, -7000}),
              ElementsAre(AllOf(HasSubstr("logps/chosen fell to -6.88e+03, from -95"),
                                HasSubstr("dpo.beta"))));
  HealthMonitor lengths("dpo");
  EXPECT_THAT(
      check_steps(lengths, "logps/chosen", {-50, -150, -120, -180, -60, -200, -240, -260, -230}),
      IsEmpty())
      << "answers of other lengths";
  HealthMonitor nan("ppo");
  EXPECT_THAT(check_steps(nan, "loss", {0.1, std::nan(""), std::nan("")}),
              ElementsAre(HasSubstr("step 2: loss is nan")));
  HealthMonitor grpo("grpo");
  std::vector<std::string> all;
  for (std::int64_t step = 1; step <= 30; ++step)
    for (auto& warning : grpo.check(
             step, {{"loss", step < 10 ? 1e-9 : 1e-3}, {"reward", static_cast<double>(step)}}))
      all.push_back(warning);
  EXPECT_THAT(all, IsEmpty()) << "the loss of GRPO is around 0";
}

/// A made run of 100 steps of reinforcement learning, evaluated before the first and after every
/// tenth step.
struct MadeRun {
  std::function<double(double t)> reward, evaluated, passed, entropy, length;
  double spread = 0.45;  ///< of the reward of a completion
  bool evaluates = true;
};
MadeRun healthy() {
  const auto learns = [](double t) { return 0.9 - 0.6 * std::exp(-t / 40); };
  return {.reward = [=](double t) { return learns(t) + 0.03 * std::sin(3 * t); },
          .evaluated = [=](double t) { return learns(t) + 0.04 * std::sin(5 * t); },
          .passed = [=](double t) { return learns(t) + 0.04 * std::sin(5 * t); },
          .entropy = [](double t) { return 0.3 + 0.7 * std::exp(-t / 30); },
          .length = [](double t) { return 100 + t; }};
}

std::vector<std::string> warnings_of(const MadeRun& run, const std::string& method = "grpo") {
  HealthMonitor monitor(method);
  std::vector<std::string> all;
  for (std::int64_t step = 0; step <= 100; ++step) {
    const double t = static_cast<double>(step);
    Metrics metrics;
    if (step > 0) {
      const bool dead = run.entropy(t) < 1e-3;
      metrics = {{"loss", 1e-9},
                 {"grad_norm", dead ? 0 : 1},
                 {"reward", run.reward(t)},
                 {"frac_reward_zero_std", dead ? 1 : 0.3},
                 {"entropy", run.entropy(t)},
                 {"completions/mean_length", run.length(t)}};
    }
    if (run.evaluates && step % 10 == 0) {
      metrics.emplace_back("eval/reward", run.evaluated(t));
      metrics.emplace_back("eval/rewards/exact_match/std", run.spread);
      metrics.emplace_back("eval/pass@1", run.passed(t));
    }
    for (auto& warning : monitor.check(step, metrics)) all.push_back(std::move(warning));
  }
  return all;
}

TEST(RunsThatGoWrong, AHealthyRunGivesNoWarning) {
  EXPECT_THAT(warnings_of(healthy()), IsEmpty());
  MadeRun noisy = healthy();
  // 40 prompts: the mean of an evaluation has a standard error of 0.07.
  noisy.evaluated = noisy.passed = [](double t) { return 0.3 + 0.07 * std::sin(7 * t); };
  EXPECT_THAT(warnings_of(noisy), IsEmpty()) << "no progress is not a fall";
  MadeRun longer = healthy();
  longer.length = [](double t) { return 100 + 5 * t; };
  EXPECT_THAT(warnings_of(longer), IsEmpty()) << "longer and better answers";
}

TEST(RunsThatGoWrong, ACollapseIsCalledACollapse) {
  MadeRun run = healthy();
  run.reward = run.evaluated = run.passed = [](double t) { return t < 17 ? 0.3 : 0.0; };
  run.entropy = [](double t) { return t < 17 ? 1.0 : 0.0; };
  const auto warnings = warnings_of(run);
  EXPECT_THAT(warnings,
              ElementsAre(AllOf(HasSubstr("policy collapse: "), HasSubstr(" fell "),
                                HasSubstr("Lower train.learning_rate"), HasSubstr("grpo.beta"))));
  run.evaluates = false;
  EXPECT_THAT(warnings_of(run),
              ElementsAre(HasSubstr("policy collapse: the reward fell from 0.3 in the first")));
}

TEST(RunsThatGoWrong, RewardHackingIsCalledRewardHacking) {
  MadeRun run = healthy();
  run.evaluated = [](double t) { return 0.3 * std::exp(-t / 30); };
  run.passed = run.evaluated;
  EXPECT_THAT(warnings_of(run),
              ElementsAre(AllOf(HasSubstr("reward hacking: the training reward rose from 0.3"),
                                HasSubstr("while eval/reward fell to 0.0"),
                                HasSubstr(", from 0.3 before training"))));
  // A reward model that is exploited: its own value rises in the evaluation, too.
  run.evaluated = run.reward;
  EXPECT_THAT(warnings_of(run, "ppo"),
              ElementsAre(AllOf(HasSubstr("reward hacking: "), HasSubstr("eval/pass@1 fell"),
                                HasSubstr("ppo.kl_coef"))));
}

TEST(RunsThatGoWrong, LengthThatRaisesTheRewardAloneIsRewardHacking) {
  MadeRun run = healthy();
  run.passed = [](double) { return 0.3; };
  run.length = [](double t) { return 100 + 10 * t; };
  EXPECT_THAT(warnings_of(run), ElementsAre(AllOf(HasSubstr("reward hacking: "),
                                                  HasSubstr("completions/mean_length from 110 to "),
                                                  HasSubstr("while eval/pass@1 did not rise"))));
}

TEST(RunsThatGoWrong, AFallWithoutACauseIsCalledAFall) {
  MadeRun run = healthy();
  run.reward = [](double t) { return 0.5 - 0.001 * t + 0.02 * std::sin(3 * t); };
  run.evaluated = run.passed = [](double t) { return 0.5 - 0.003 * t; };
  EXPECT_THAT(warnings_of(run),
              ElementsAre(AllOf(HasSubstr(": eval/reward fell to 0.3"),
                                HasSubstr("from 0.5 before training. Lower train.learning_rate"),
                                Not(HasSubstr("hacking")), Not(HasSubstr("collapse")))));
  // Negative rewards, as those of a reward model.
  run.evaluated = [](double t) { return -0.5 - 0.02 * t; };
  run.passed = [](double) { return 0.0; };
  EXPECT_THAT(warnings_of(run), ElementsAre(HasSubstr("eval/reward fell to -0.")));
}

TEST(RunsThatGoWrong, AFallThatEndsIsReportedOnceAndASecondOneAgain) {
  MadeRun run = healthy();
  run.reward = [](double) { return 0.5; };
  run.evaluated = run.passed = [](double t) { return (t >= 20 && t <= 40) || t >= 80 ? 0.1 : 0.5; };
  EXPECT_EQ(warnings_of(run).size(), 2u);
}

TEST(HealthMonitor, EveryRuleHasATextWithoutUnknownNames) {
  for (const HealthRule& rule : health_rules()) {
    EXPECT_GE(rule.steps, 1);
    EXPECT_GT(rule.text.size(), 20u) << rule.metric;
    HealthMonitor monitor("grpo");
    const double far =
        rule.bound == HealthRule::Bound::below_first ? -1e4
        : rule.bound == HealthRule::Bound::at_most || rule.bound == HealthRule::Bound::below_start
            ? 0
            : 1e4;
    const double start = rule.bound == HealthRule::Bound::below_first ? -1 : 1;
    std::vector<double> values(5, start);
    values.insert(values.end(), 12, far);
    std::vector<std::string> said;
    for (std::size_t i = 0; i < values.size(); ++i) {
      Metrics metrics{{std::string(rule.metric), values[i]}};
      if (!rule.where_above_0.empty()) metrics.emplace_back(rule.where_above_0, 1);
      for (auto& warning : monitor.check(static_cast<std::int64_t>(i) + 1, metrics))
        said.push_back(std::move(warning));
    }
    ASSERT_FALSE(said.empty()) << rule.metric;
    for (const auto& text : said) EXPECT_EQ(text.find('{'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace troupe::algorithms
