// The grpo recipe: presets match their papers, compat presets match the tools, and contradictions
// are reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/text/text.h"
#include "launch/recipes/grpo.h"
#include "launch/recipes/grpo_formula.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/resolve.h"

namespace troupe::launch::grpo_recipe_test {
namespace {

using algorithms::Aggregation;
using algorithms::Estimator;
using algorithms::RatioLevel;
using algorithms::SurrogateKind;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Result<recipes::Resolved> with(const std::string& algorithm, std::vector<std::string> sets = {}) {
  for (const char* needed : {"model=M", "data.path=D", "output=O", "reward=exact_match"})
    sets.insert(sets.begin(), needed);
  return recipes::resolve(
      {.algorithm = algorithm, .file = "", .sets = std::move(sets), .check_files = false});
}
algorithms::GrpoConfig settings(const std::string& algorithm, std::vector<std::string> sets = {}) {
  return value_or_throw(
      recipes::grpo_settings(value_or_throw(with(algorithm, std::move(sets))).config));
}

TEST(GrpoPresets, AreWhatTheirPapersSay) {
  const auto dapo = settings("dapo");
  EXPECT_TRUE(dapo.dynamic.on);
  EXPECT_EQ(dapo.loss.surrogate.clip_high, 0.28);
  EXPECT_EQ(settings("gspo").loss.ratio, RatioLevel::sequence);
  EXPECT_EQ(settings("gspo").loss.surrogate.clip_high, 4e-4);
  EXPECT_EQ(settings("cispo").loss.surrogate.kind, SurrogateKind::cispo);
  EXPECT_EQ(settings("sapo").loss.surrogate.kind, SurrogateKind::sapo);
  EXPECT_EQ(settings("vespo").loss.surrogate.kind, SurrogateKind::vespo);
  EXPECT_EQ(settings("luspo").loss.aggregation, Aggregation::sequence_sum);
  const auto rloo = settings("rloo"), plus = settings("reinforce_pp"),
             baseline = settings("reinforce_pp_baseline");
  EXPECT_EQ(rloo.advantage.estimator, Estimator::rloo);
  EXPECT_EQ(rloo.loss.ratio, RatioLevel::sequence_sum);
  EXPECT_TRUE(rloo.compares());
  EXPECT_EQ(plus.advantage.estimator, Estimator::reinforce_pp);
  EXPECT_EQ(plus.group, 1);
  EXPECT_EQ(baseline.advantage.scale, algorithms::GroupScale::none);
  EXPECT_EQ(baseline.advantage.normalise, algorithms::Normalise::tokens);
  EXPECT_EQ(settings("remax").advantage.estimator, Estimator::remax);
}

TEST(GrpoPresets, WorkWithEveryCompatPreset) {
  for (const recipes::Preset& preset : recipes::algorithm_presets()) {
    for (const recipes::Preset& tool : recipes::compat_presets()) {
      if (tool.of != preset.of) continue;
      const auto got = with(std::string(preset.name), {cat("compat=", tool.name)});
      ASSERT_TRUE(got) << preset.name << " with the defaults of " << tool.name << ": "
                       << got.error().what;
      const auto made = recipes::grpo_settings(got->config);
      EXPECT_TRUE(made) << preset.name << " with the defaults of " << tool.name << ": "
                        << made.error().what;
    }
  }
}

TEST(GrpoCompat, AreTheToolsDefaults) {
  EXPECT_EQ(settings("grpo", {"compat=trl"}).advantage.eps, 1e-4);
  const auto verl = settings("grpo", {"compat=verl"});
  EXPECT_EQ(verl.advantage.eps, 1e-6);
  EXPECT_EQ(verl.loss.surrogate.dual_clip, 3);
  EXPECT_FALSE(verl.counting.empty_sequences);
  EXPECT_EQ(settings("grpo", {"compat=openrlhf"}).advantage.variance, algorithms::Variance::biased);
  EXPECT_EQ(settings("grpo", {"compat=mindspeed"}).loss.kl_clamp, algorithms::KlClamp::verl);
}

TEST(GrpoKeys, OfferTheWordsThatTheAlgorithmKnows) {
  const auto listed = [](const auto& names) {
    return std::vector<std::string>(names.begin(), names.end());
  };
  EXPECT_EQ(config::find_field("grpo.policy_loss")->choices, listed(names_of(SurrogateKind{})));
  EXPECT_EQ(config::find_field("grpo.ratio")->choices, listed(names_of(RatioLevel{})));
  EXPECT_EQ(config::find_field("grpo.estimator")->choices, listed(names_of(Estimator{})));
  EXPECT_EQ(config::find_field("grpo.normalize_advantages")->choices,
            listed(names_of(algorithms::Normalise{})));
  EXPECT_EQ(config::find_field("grpo.variance")->choices, listed(names_of(algorithms::Variance{})));
  EXPECT_EQ(config::find_field("grpo.kl_clamp")->choices, listed(names_of(algorithms::KlClamp{})));
  EXPECT_EQ(config::find_field("grpo.correction")->choices, listed(names_of(algorithms::Over{})));
  EXPECT_EQ(config::find_field("grpo.correction_outside")->choices,
            listed(names_of(algorithms::Outside{})));
  EXPECT_EQ(config::find_field("grpo.filter")->choices, listed(names_of(algorithms::FilterOver{})));
  EXPECT_EQ(config::find_field("grpo.filter_by")->choices,
            listed(names_of(algorithms::FilterBy{})));
  EXPECT_EQ(config::find_field("grpo.proximal")->choices, listed(names_of(algorithms::Proximal{})));
  EXPECT_EQ(config::find_field("grpo.entropy_schedule")->choices,
            listed(names_of(algorithms::EntropySchedule{})));
}

TEST(GrpoValidation, RefusesWhatCannotWork) {
  const auto refused = [](const std::string& algorithm, std::vector<std::string> sets,
                          const char* message) {
    const auto got = with(algorithm, std::move(sets));
    ASSERT_FALSE(got) << message;
    EXPECT_THAT(got.error().what, HasSubstr(message));
  };
  refused("rloo", {"grpo.group_size=1"}, "the nearest valid value is 2");
  refused("grpo", {"grpo.estimator=loo_scaled", "grpo.group_size=2"},
          "the nearest valid value is 3");
  refused("remax", {"grpo.dynamic_sampling=true"}, "refilled forever");
  refused("dapo", {"grpo.dynamic_bounds=[1, 0]"}, "the lower one first");
  refused("dapo", {"grpo.overlong_buffer=300", "rollout.max_new_tokens=256"},
          "every answer would be penalized");
  refused("rloo", {"grpo.normalize_each_reward=true"}, "for grpo.estimator = group only");
  refused("vespo", {"grpo.ratio=sequence"}, "expected token");
  refused("cispo", {"grpo.dual_clip=3"}, "policy_loss is not clip");
  refused("grpo", {"grpo.policy_loss=kl_cov", "grpo.ratio=sequence"},
          "kl_cov starts from the ratios of tokens");
  refused("grpo", {"grpo.policy_loss=clip_cov", "grpo.cov_low=6"},
          "expected a number below cov_high");
  refused("grpo", {"grpo.filter=greatest"}, "set filter_by to k2 or k3");
  refused("grpo", {"grpo.proximal=loglinear", "grpo.recompute_old_logp=true"}, "set one of them");
  refused("grpo", {"grpo.proximal=loglinear", "rollout.weights=int8"},
          "approximates what rollout.weights");
  refused("grpo", {"rollout.weights=int4"}, "must be one of full, int8");
  refused("grpo", {"grpo.entropy_schedule=adaptive", "grpo.entropy_coef=2"},
          "grpo.entropy_coef_max, found 0 and 1");
}

TEST(GrpoValidation, RefusesWhatOtherProgramsCannotMake) {
  const auto problem = [](std::vector<std::string> sets, const std::string& algorithm = "grpo") {
    for (const char* set : {"model=M", "data.path=D", "output=O", "rollout.source=service"})
      sets.emplace_back(set);
    const auto got = recipes::resolve(
        {.algorithm = algorithm, .file = "", .sets = std::move(sets), .check_files = false});
    return got ? "" : got.error().what;
  };
  const std::string listen = "serve.listen=unix:socket";
  EXPECT_EQ(problem({listen}), "");
  EXPECT_EQ(problem({"serve.listen=8000", "serve.api_key_file=keys"}), "");
  EXPECT_EQ(problem({"serve.listen=8000", "serve.api_key_file=keys", "rollout.lease_keys=[a, b]"}),
            "");
  EXPECT_THAT(problem({"serve.listen=8000"}), HasSubstr("rollout.source"));
  EXPECT_THAT(problem({"serve.listen=8000"}),
              HasSubstr("set serve.api_key_file (docs/agents.md), or serve.listen = unix:PATH"));
  EXPECT_THAT(problem({listen, "rollout.lease_keys=[a]"}), HasSubstr("set serve.api_key_file"));
  EXPECT_EQ(problem({listen, "async.mode=free"}), "");
  EXPECT_THAT(problem({}), HasSubstr("set serve.listen"));
  EXPECT_THAT(problem({listen, "reward=exact_match"}), HasSubstr("leave out reward"));
  EXPECT_THAT(problem({listen, "eval.path=D"}), HasSubstr("leave out eval.path"));
  EXPECT_THAT(problem({listen, "rollout.temperature=0.5"}), HasSubstr("the only valid value is 1"));
  EXPECT_THAT(problem({listen, "async.mode=pinned"}), HasSubstr("expected off or free"));
  EXPECT_THAT(problem({listen}, "remax"), HasSubstr("makes no greedy answers"));
  EXPECT_THAT(problem({listen}, "ppo"), HasSubstr("only grpo and its relatives"));
}

TEST(ServeValidation, RefusesWhatItCannotServe) {
  EXPECT_TRUE(with("grpo", {"serve.listen=0"}));
  EXPECT_THAT(with("grpo", {"serve.listen=localhost:x"}).error().what,
              HasSubstr("expected HOST:PORT"));
  EXPECT_THAT(with("grpo", {"serve.listen=0", "lora.rank=8"}).error().what,
              HasSubstr("not those of an adapter"));
  EXPECT_THAT(with("grpo", {"serve.listen=0", "serve.tls_key=K"}).error().what,
              HasSubstr("TLS needs both"));
  EXPECT_THAT(value_or_throw(with("grpo", {"serve.threads=2"})).warnings,
              Contains(HasSubstr("serve.listen is not set")));
}

TEST(ServeConfig, ReadsAddressesAndNumbersThePortsOfRollouts) {
  const auto address = value_or_throw(serve::listen_address("[::1]:8000"));
  EXPECT_EQ(address.host, "::1");
  EXPECT_EQ(address.port, 8000);
  EXPECT_EQ(value_or_throw(serve::listen_address("8000")).host, "127.0.0.1");
  EXPECT_EQ(value_or_throw(serve::listener_of("[::1]:8000", 2)), "[::1]:8002");
  EXPECT_EQ(value_or_throw(serve::listener_of("8000", 1)), "127.0.0.1:8001");
  EXPECT_EQ(value_or_throw(serve::listener_of("0", 1)), "127.0.0.1:0");
  for (const char* wrong : {"", ":8000", "localhost", "localhost:", "1.2.3.4:65536", "1.2.3.4:-1"})
    EXPECT_FALSE(serve::listen_address(wrong)) << wrong;
  EXPECT_FALSE(serve::listener_of("1.2.3.4:65535", 1));
  EXPECT_EQ(value_or_throw(serve::listen_address("unix:/run/user/1/a:1")).unix_socket,
            "/run/user/1/a:1");
  EXPECT_EQ(value_or_throw(serve::listener_of("unix:a", 0)), "unix:a");
  EXPECT_EQ(value_or_throw(serve::listener_of("unix:a", 2)), "unix:a.2");
  const std::string longest = "unix:" + std::string(107, 'a');
  EXPECT_TRUE(serve::listen_address(longest));
  for (const std::string& wrong : {std::string("unix:"), std::string("unix:a/"), longest + "a"})
    EXPECT_FALSE(serve::listen_address(wrong)) << wrong;
  EXPECT_FALSE(serve::listener_of(longest, 1));
}

TEST(GrpoValidation, WarnsOfWhatIsOdd) {
  const auto warned = [](const std::string& algorithm, std::vector<std::string> sets,
                         const char* message) {
    const auto got = with(algorithm, std::move(sets));
    ASSERT_TRUE(got) << got.error().what;
    EXPECT_THAT(got->warnings, Contains(HasSubstr(message)));
  };
  warned("rloo", {"grpo.beta=0.1"}, "applied twice");
  warned("cispo", {"grpo.clip_high=0.2"}, "even an on-policy token");
  warned("grpo", {"grpo.correction=token"}, "every weight is exactly 1");
  warned("grpo", {"grpo.recompute_old_logp=true"}, "no correction uses the difference");
  warned("grpo", {"grpo.clip_high=0.3"}, "all ratios are exactly 1");
  warned("grpo", {"grpo.ratio=sequence", "grpo.epochs=2"},
         "GSPO uses 3e-4 with a clip_high of 4e-4");
  warned("grpo", {"grpo.max_refills=3"}, "grpo.dynamic_sampling is off");
  warned("dapo", {"train.batch_size=1"}, "a rollout of one prompt");
  warned("grpo", {"grpo.group_size=2"}, "plus and minus 0.71");
  warned("grpo", {"grpo.proximal=linear", "grpo.epochs=2"}, "set grpo.correction");
  warned("grpo", {"grpo.proximal=linear"}, "the approximation is the rollout policy itself");
  warned("grpo", {"grpo.entropy_target=0.3"}, "grpo.entropy_schedule is fixed");
  warned("grpo", {"grpo.filter_by=k2"}, "grpo.filter is none");
  warned("grpo", {"grpo.policy_loss=kl_cov"}, "has no effect");
  EXPECT_THAT(with("gspo")->warnings, Not(Contains(HasSubstr("all ratios are exactly 1"))))
      << "the user did not set that clip";
}

TEST(RolloutsInInt8, HaveThePolicyRecomputeLogProbabilities) {
  EXPECT_FALSE(settings("grpo").recompute_old);
  EXPECT_TRUE(settings("grpo", {"rollout.weights=int8"}).recompute_old);
  EXPECT_THAT(with("grpo", {"rollout.weights=int8", "grpo.correction=token"})->warnings,
              Not(Contains(HasSubstr("every weight is exactly 1"))));
}

TEST(GrpoFormula, StatesWhatIsMinimised) {
  const auto formula = [](const std::string& algorithm, std::vector<std::string> sets = {}) {
    return recipes::grpo_formula(with(algorithm, std::move(sets))->config);
  };
  EXPECT_THAT(formula("dapo"), HasSubstr("clip(rho, 0.8, 1.28) A)"));
  EXPECT_THAT(formula("cispo"), HasSubstr("constant(min(rho, 5)) A log p(t)"));
  EXPECT_THAT(formula("rloo"), HasSubstr("A = R - mean of the others of its group"));
  EXPECT_THAT(formula("rloo"), HasSubstr("R: less 0.05 x summed over its tokens"));
  EXPECT_THAT(formula("reinforce_pp"), HasSubstr("over the round's tokens"));
  EXPECT_THAT(formula("grpo", {"compat=verl"}), HasSubstr("- 3 A where A < 0"));
  EXPECT_THAT(formula("grpo", {"grpo.correction=token", "grpo.recompute_old_logp=true"}),
              HasSubstr("l = w - min("));
  EXPECT_THAT(formula("grpo", {"grpo.policy_loss=dppo_tv"}),
              HasSubstr("p(t) - p_old(t) is above 0.2 and A > 0"));
  EXPECT_THAT(formula("grpo", {"grpo.policy_loss=clip_cov"}),
              HasSubstr("0 at 0.02 % of the tokens"));
  EXPECT_THAT(formula("grpo", {"grpo.entropy_schedule=adaptive"}),
              HasSubstr("changed by 0.005 towards H = 0.2"));
}

}  // namespace
}  // namespace troupe::launch::grpo_recipe_test
