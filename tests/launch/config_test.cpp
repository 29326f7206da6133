#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "algorithms/advantages/advantage.h"
#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/grpo_loss.h"
#include "algorithms/losses/sft_loss.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/reference_page.h"
#include "launch/recipes/resolve.h"
#include "launch/run/exit_code.h"

namespace troupe::launch::config_test {
namespace {

using testing::HasSubstr;

const std::vector<std::string> enough{"model=M", "data.path=D", "output=O"};

Result<recipes::Resolved> with(std::vector<std::string> sets, std::string algorithm = "sft",
                               std::string file = "") {
  sets.insert(sets.begin(), enough.begin(), enough.end());
  return recipes::resolve({.algorithm = std::move(algorithm),
                           .file = std::move(file),
                           .sets = std::move(sets),
                           .check_files = false});
}

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  EXPECT_TRUE(write_file_durably(path, text));
  return path;
}

TEST(Config, EveryKeyButThreeHasADefault) {
  const auto got = with({});
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->config.train.dtype, engine::ops::Precision::f32);
  EXPECT_EQ(got->config.train.seed, 0);
  EXPECT_EQ(got->config.resume, "auto");
  EXPECT_EQ(got->origins.at("train.dtype"), "default");
  EXPECT_EQ(got->origins.at("model"), "--set");
  EXPECT_EQ(got->origins.at("algorithm"), "--algorithm");
  EXPECT_TRUE(got->warnings.empty());
}

TEST(Config, SetWinsOverTheFileAndTheFileOverDefaults) {
  const std::string path =
      file_with("wins.yaml", "train:\n  steps: 7\n  learning_rate: 1e-4\ntrain.eps: 1e-6\n");
  const auto got = with({"train.steps=9"}, "sft", path);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->config.train.steps, 9);
  EXPECT_EQ(got->config.train.learning_rate, 1e-4);
  EXPECT_EQ(got->config.train.optimizer.eps, 1e-6);
  EXPECT_EQ(got->origins.at("train.steps"), "--set");
  EXPECT_EQ(got->origins.at("train.learning_rate"), cat(path, ":3"));
}

TEST(Config, JsonIsReadEvenWithTabs) {
  const std::string path = file_with(
      "tabs.json", "{\n\t\"train\": {\n\t\t\"steps\": 3,\n\t\t\"betas\": [0.9, 0.95]}}\n");
  const auto got = with({}, "sft", path);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->config.train.steps, 3);
  EXPECT_EQ(got->config.train.optimizer.betas, (std::array<double, 2>{0.9, 0.95}));
}

TEST(Config, ListsAndMapsCanBeSet) {
  const auto got = with(
      {"data.path=[a.jsonl, b.jsonl]", "data.columns.prompt=question",
       "data.columns.answer=solution", "train.betas=[0.8, 0.9]", "rollout.stop=[\"\\n\\n\", END]",
       "reward=[{rule: boxed, weight: 2}, {rule: length, max: 9}]"},
      "grpo");
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->config.data.paths, (std::vector<std::string>{"a.jsonl", "b.jsonl"}));
  EXPECT_EQ(got->config.data.columns.at("prompt"), "question");
  EXPECT_EQ(got->config.train.optimizer.betas, (std::array<double, 2>{0.8, 0.9}));
  EXPECT_EQ(got->config.rollout.sampling.stop_strings, (std::vector<std::string>{"\n\n", "END"}));
  ASSERT_EQ(got->config.reward.size(), 2u);
  EXPECT_EQ(got->config.reward[0].weight, 2);
  EXPECT_EQ(got->config.reward[1].rule, "length");
}

TEST(Config, TextMayLookLikeYaml) {
  const auto got = with({"model=/a: b/{c}", "dpo.reference=[x]"}, "dpo");
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->config.model, "/a: b/{c}");
  EXPECT_EQ(got->config.dpo.reference, "[x]");
}

TEST(Config, WordsOfOtherProgramsAreUnderstood) {
  const auto got =
      with({"train.schedule=inverse-square-root", "train.dtype=BF16", "train.betas=0.8,0.9"});
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->config.train.optimizer.betas, (std::array<double, 2>{0.8, 0.9}));
  EXPECT_EQ(got->config.train.schedule, engine::optim::ScheduleKind::inverse_sqrt);
  EXPECT_EQ(got->config.train.dtype, engine::ops::Precision::bf16);
}

struct Wrong {
  const char* set;
  const char* message;
  const char* algorithm = "sft";
};

/// ctest names each case after its parameter: letters, digits and underscores only.
void PrintTo(const Wrong& wrong, std::ostream* out) {
  for (const char* c = wrong.set; *c; ++c)
    *out << (std::isalnum(static_cast<unsigned char>(*c)) ? *c : '_');
  if (*wrong.algorithm) *out << '_' << wrong.algorithm;
}

class ConfigErrors : public testing::TestWithParam<Wrong> {};

TEST_P(ConfigErrors, StateWhatWouldBeValid) {
  const auto got = with({GetParam().set}, GetParam().algorithm);
  ASSERT_FALSE(got) << "accepted";
  EXPECT_EQ(got.error().code, Errc::usage);
  EXPECT_THAT(got.error().what, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Table, ConfigErrors,
    testing::Values(
        Wrong{"train.step=3", "unknown key train.step (--set); did you mean train.steps?"},
        Wrong{"learning_rate=1",
              "unknown key learning_rate (--set); did you mean train.learning_rate?"},
        Wrong{"trian.lerning_rate=1", "did you mean train.learning_rate?"},
        Wrong{"zzzzzzzz=1", "troupe explain --reference lists all keys"},
        Wrong{"train=1", "is a section"}, Wrong{"train.steps", "key=value is expected"},
        Wrong{"train.steps=many",
              "train.steps (--set): a whole number is expected, found \"many\""},
        Wrong{"train.steps=1.5", "a whole number is expected"},
        Wrong{"train.steps=99999999999999999999",
              "a whole number of at most 9223372036854775807 is expected"},
        Wrong{"train.steps=-1",
              "must be at least 0, at most 1000000000000; the nearest valid value is 0"},
        Wrong{"train.keep_last=1", "the nearest valid value is 2"},
        Wrong{"train.eps=0", "must be above 0"},
        Wrong{"train.eps=nan", "a finite number is expected"},
        Wrong{"train.eps=inf", "a finite number is expected"},
        Wrong{"train.batch_size=0",
              "train.batch_size = 0 (--set): must be at least 1, at most 1048576; the nearest "
              "valid value is 1"},
        Wrong{"train.betas=[0.9]", "must have 2 numbers, has 1"},
        Wrong{"train.betas=[0.9, 1]", "must be at least 0, below 1"},
        Wrong{"train.schedule=cosin", "did you mean cosine?"},
        Wrong{"train.dtype=fp8", "must be one of f32, bf16"},
        Wrong{"data.format=alpacca", "did you mean alpaca?"},
        Wrong{"compat=verrl", "must be one of trl, verl, openrlhf, mindspeed"},
        Wrong{"lora.rank_pattern={q_proj: 0}", "must be at least 1"},
        Wrong{"ppo.aggregation=dr_grpo", "must be one of grpo, bnpo, dapo, seq-mean-token-sum",
              "ppo"},
        Wrong{"data.mix=[{path: a, wieght: 2}]",
              "path, weight, epochs, format, columns and system are known"},
        Wrong{"data.shuffle=yes", "true or false is expected, found \"yes\""},
        Wrong{"output=M", "is the model's own directory"},
        Wrong{"dpo.label_smoothing=0.5", "must be at least 0, below 0.5", "dpo"},
        Wrong{"reward=exact_mach", "did you mean exact_match?", "grpo"},
        Wrong{"reward=regex", "pattern: expected a regular expression", "grpo"},
        Wrong{"reward=[{rule: length, min: 9, max: 3}]", "found min 9, max 3", "grpo"},
        Wrong{"reward=[{rule: exact_match, stripp: true}]", "did you mean strip?", "grpo"},
        Wrong{"reward=[{rule: boxed, weight: 0}]", "every reward is 0", "grpo"},
        Wrong{"reward=[{rull: boxed}]", "did you mean rule?", "grpo"},
        Wrong{"reward=[{name: boxed}]", "needs the key rule", "grpo"},
        Wrong{"data.shuffle=true", "reward is not set", "grpo"},
        Wrong{"train.steps=1", "algorithm is not set", ""},
        Wrong{"train.steps=1", "did you mean grpo?", "grop"}));

TEST(Config, NonsenseIsRefusedWithTheNearestSense) {
  const auto refused = [](std::vector<std::string> sets, const char* message) {
    sets.push_back("reward=exact_match");
    const auto got = with(std::move(sets), "grpo");
    ASSERT_FALSE(got);
    EXPECT_THAT(got.error().what, HasSubstr(message));
  };
  refused({"grpo.group_size=1"}, "the nearest valid value is 2");
  refused({"rollout.temperature=0"}, "1 is usual");
  refused({"grpo.constant_length=5"}, "aggregation = dr_grpo only");
  const auto hinge = with({"dpo.loss=hinge", "dpo.label_smoothing=0.1"}, "dpo");
  ASSERT_FALSE(hinge);
  EXPECT_THAT(hinge.error().what, HasSubstr("dpo.label_smoothing: hinge does not use it (found "
                                            "0.1); choose the kind cdpo or robust, or 0"));
}

TEST(Config, EarlyStoppingIsAMapOrTwoKeys) {
  const auto file =
      file_with("stopping.yaml", "train:\n  early_stopping: {metric: eval/loss, patience: 5}\n");
  for (const auto& got :
       {with({"eval.path=E"}, "sft", file),
        with({"eval.path=E", "train.early_stopping={metric: eval/loss, patience: 5}"}),
        with({"eval.path=E", "train.early_stopping.metric=eval/loss",
              "train.early_stopping.patience=5"})}) {
    ASSERT_TRUE(got) << got.error().what;
    EXPECT_EQ(got->config.train.early_stopping_metric, "eval/loss");
    EXPECT_EQ(got->config.train.early_stopping_patience, 5);
    EXPECT_THAT(got->warnings, testing::Contains(HasSubstr("only the last step is compared")));
  }
  EXPECT_THAT(with({"train.early_stopping={metrik: eval/loss}"}).error().what,
              HasSubstr("did you mean train.early_stopping.metric?"));
}

TEST(Config, MetricsOfAnotherEvaluationAreRefusedWithTheKnownOnes) {
  const auto refused = [](const std::string& algorithm, std::vector<std::string> sets) {
    for (const char* needed : {"eval.path=E", "eval.every=2"}) sets.emplace_back(needed);
    if (algorithm == "grpo")
      sets.emplace_back("reward=[{rule: exact_match}, {rule: command, run: [x]}]");
    const auto got = with(std::move(sets), algorithm);
    return got ? std::string("accepted") : got.error().what;
  };
  EXPECT_THAT(refused("sft", {"train.keep_best=eval/reward"}),
              HasSubstr("must be a metric of the evaluation: eval/loss, eval/nll"));
  EXPECT_THAT(refused("dpo", {"train.keep_best=eval/rewards/accuracy/mean"}),
              HasSubstr("eval/rewards/accuracies"));
  EXPECT_THAT(refused("dpo", {"train.early_stopping.metric=eval/rewards/rejected"}),
              HasSubstr("write -eval/rewards/rejected (lower)"));
  EXPECT_THAT(refused("grpo", {"train.keep_best=eval/pass@2"}), HasSubstr("eval/pass@1"));
  EXPECT_EQ(refused("grpo", {"train.keep_best=eval/pass@2", "eval.samples=2"}), "accepted");
  EXPECT_EQ(refused("grpo", {"train.keep_best=eval/rewards/exact_match/mean"}), "accepted");
  EXPECT_EQ(refused("grpo", {"train.keep_best=eval/rewards/command/style/mean"}), "accepted")
      << "a program names its own values";
  EXPECT_EQ(refused("sft", {"train.keep_best=-eval/nll"}), "accepted");
  const auto without = with({"train.keep_best=eval/loss"});
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().what, HasSubstr("the run has no evaluation; set eval.path"));
}

TEST(Config, EvaluationsOfPromptsAreChecked) {
  const auto refused = [](std::vector<std::string> sets, const char* message) {
    for (const char* needed : {"reward=exact_match", "eval.path=E"}) sets.emplace_back(needed);
    const auto got = with(std::move(sets), "grpo");
    ASSERT_FALSE(got) << message;
    EXPECT_THAT(got.error().what, HasSubstr(message));
  };
  refused({"eval.temperature=0", "eval.samples=4"}, "are all equal; set eval.samples to 1");
  refused({"eval.temperature=-0.5"}, "must be -1 (automatic), 0 (greedy) or above");
  refused({"eval.samples=0"}, "must be at least 1");
  EXPECT_THAT(with({"eval.samples=4", "eval.path=E"})->warnings,
              testing::Contains(HasSubstr("only methods that sample")));
}

TEST(Config, StepsThatCutARoundAreWarnedOf) {
  const auto warnings = [](const char* steps) {
    return with({steps, "grpo.epochs=3", "grpo.minibatches=2", "reward=exact_match"}, "grpo")
        .value()
        .warnings;
  };
  EXPECT_THAT(warnings("train.steps=13"),
              testing::Contains(HasSubstr("one batch of samples makes 6 steps")));
  EXPECT_THAT(warnings("train.steps=12"),
              Not(testing::Contains(HasSubstr("one batch of samples"))));
}

TEST(Config, AllProblemsAreListedAtOnce) {
  const std::string path =
      file_with("bad.yaml", "modle: x\ntrain:\n  steps: soon\n  betas: [2, 0.9]\ndata: 5\n");
  const auto got = recipes::resolve(
      {.algorithm = "sft", .file = path, .sets = {"output=O"}, .check_files = false});
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().what, HasSubstr("the configuration has 5 problems:"));
  EXPECT_THAT(got.error().what,
              HasSubstr(cat("unknown key modle (", path, ":1); did you mean model?")));
  EXPECT_THAT(got.error().what, HasSubstr(cat("train.steps (", path,
                                              ":3): a whole number is expected, found \"soon\"")));
  EXPECT_THAT(got.error().what, HasSubstr("data is a section"));
  EXPECT_THAT(got.error().what, HasSubstr("model is not set"));
  EXPECT_THAT(got.error().what, Not(HasSubstr("data.path is not set")));
  EXPECT_THAT(got.error().what, HasSubstr("train.betas"));
}

TEST(Config, OneMistakeIsOneProblem) {
  for (const auto& [set, algorithm] : {std::pair{"dpo.beta=0", "dpo"},
                                       {"reward=[{rule: boxed, weight: abc}]", "grpo"},
                                       {"simpo.beta=-1", "simpo"},
                                       {"reward=nonsense", "ppo"},
                                       {"orm.head_init_std=-1", "orm"}}) {
    const auto got = with({set}, algorithm);
    ASSERT_FALSE(got) << set;
    EXPECT_THAT(got.error().what, HasSubstr("the configuration has a problem:")) << set;
  }
  const auto number = with({"train.learning_rate=nan", "train.steps=-1x"});
  ASSERT_FALSE(number);
  EXPECT_THAT(number.error().what, HasSubstr("the configuration has 2 problems:"));
  for (const std::string& path :
       {std::string("/no/such.yaml"), file_with("no.yaml", "train: [1, 2\n")}) {
    const auto file =
        recipes::resolve({.algorithm = "", .file = path, .sets = {}, .check_files = false});
    ASSERT_FALSE(file);
    EXPECT_THAT(file.error().what, HasSubstr("the configuration has a problem:"));
    EXPECT_THAT(file.error().what, HasSubstr(path));
  }
}

TEST(Config, MissingFilesAreProblemsToo) {
  const auto got = recipes::resolve({.algorithm = "sft", .file = "", .sets = enough});
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().what, HasSubstr("model = \"M\": no such directory"));
  EXPECT_THAT(got.error().what, HasSubstr("data.path: no file or folder \"D\""));
}

TEST(Config, HarmlessOdditiesAreWarnings) {
  const auto got = with({"train.steps=5", "train.warmup_steps=9", "dpo.beta=0.2"});
  ASSERT_TRUE(got);
  ASSERT_EQ(got->warnings.size(), 2u);
  EXPECT_THAT(got->warnings[0], HasSubstr("the run of 5 steps ends before the warmup does"));
  EXPECT_THAT(got->warnings[1], HasSubstr("not used by sft"));
}

TEST(Config, TheResolvedFileReadsBackTheSame) {
  const auto first = with({"reward=[{rule: regex, weight: 0.5, pattern: \"a: [b]\\n\"}]",
                           "rollout.stop=[\"#: x\", 'null', ' ', \"\\u009b\\u202e\\x1b\"]",
                           "data.columns.prompt=the question",
                           "train.learning_rate=0.00012345678901234567", "train.betas=[0.1, 0.2]"},
                          "grpo");
  ASSERT_TRUE(first) << first.error().what;
  const std::string text = recipes::to_yaml(first->config);
  const auto again = recipes::resolve(
      {.algorithm = "", .file = file_with("again.yaml", text), .sets = {}, .check_files = false});
  ASSERT_TRUE(again) << again.error().what << text;
  EXPECT_EQ(recipes::to_yaml(again->config), text);
  EXPECT_EQ(again->config.train.learning_rate, first->config.train.learning_rate);
  EXPECT_EQ(again->config.reward, first->config.reward);
  EXPECT_EQ(again->config.rollout.sampling.stop_strings,
            (std::vector<std::string>{"#: x", "null", " ", "\xc2\x9b\xe2\x80\xae\x1b"}));
  EXPECT_THAT(text, HasSubstr("\\u009b\\u202e\\u001b"));
}

// A run's own config.yaml is a good start for the next run.
TEST(Config, TheResolvedFileHasWhatTheMethodReadsAndWarnsOfNothing) {
  for (const std::string& algorithm : recipes::algorithm_names()) {
    const auto first = with({"reward=exact_match", "train.steps=120"}, algorithm);
    ASSERT_TRUE(first) << first.error().what;
    const std::string text = recipes::to_yaml(first->config);
    const auto again = recipes::resolve({.algorithm = "",
                                         .file = file_with("own.yaml", text),
                                         .sets = {"output=reuse"},
                                         .check_files = false,
                                         .options = {}});
    ASSERT_TRUE(again) << algorithm << again.error().what;
    for (const std::string& warning : again->warnings)
      EXPECT_THAT(warning, Not(HasSubstr("own.yaml"))) << algorithm;
    EXPECT_LE(again->warnings.size(), first->warnings.size()) << algorithm;
    EXPECT_EQ(text.find("\nsft:") != text.npos, algorithm == "sft") << algorithm;
    EXPECT_EQ(recipes::to_yaml(again->config).find("epochs: 1\n") != text.npos,
              text.find("  epochs: 1\n") != text.npos);
  }
  const auto user = with({"dpo.beta=0.1"});
  ASSERT_TRUE(user);
  ASSERT_EQ(user->warnings.size(), 1u);
  EXPECT_THAT(user->warnings[0], HasSubstr("dpo.beta = 0.1 (--set): not used by sft"));
}

TEST(Config, ListsWithoutBracketsAreShownHowToWriteThem) {
  const auto targets = with({"lora.rank=4", "lora.targets=q_proj,v_proj"});
  ASSERT_FALSE(targets);
  EXPECT_THAT(targets.error().what, HasSubstr("lora.targets=[q_proj,v_proj]"));
  const auto pattern = with({"lora.rank=4", "lora.targets=.*layers\\.[0-9]{1,2}.*q_proj"});
  EXPECT_TRUE(pattern) << pattern.error().what;
  const auto files = recipes::resolve({.algorithm = "sft",
                                       .file = "",
                                       .sets = {"model=M", "output=O", "data.path=a,b"},
                                       .options = {}});
  ASSERT_FALSE(files);
  EXPECT_THAT(files.error().what, HasSubstr("a list of files is written data.path=[a, b]"));
}

TEST(Config, AnUnknownRuleIsAnsweredWithAllRules) {
  const auto got = with({"reward=exact"}, "grpo");
  ASSERT_FALSE(got);
  EXPECT_THAT(
      got.error().what,
      HasSubstr("reward[0]: unknown rule \"exact\"; did you mean exact_match? The rules are "
                "exact_match, gsm8k, boxed, gsm8k_published, math_published, format, regex, "
                "length, command, python, model, process (docs/rewards.md)"));
}

TEST(Config, TheReferencePageIsCurrent) {
  const auto page = read_file(std::string(TROUPE_DOCS) + "/configuration.md");
  ASSERT_TRUE(page) << page.error().what;
  EXPECT_EQ(*page, recipes::reference_page())
      << "run: troupe explain --reference > docs/configuration.md";
}

TEST(Config, DefaultsAreInTheirOwnRanges) {
  for (const config::Field& field : config::fields())
    EXPECT_EQ(config::find_field(field.key), &field) << "two fields are called " << field.key;
  const auto got = with({"reward=exact_match"}, "grpo");
  EXPECT_TRUE(got) << got.error().what;
}

template <class Names>
std::vector<std::string> listed(const Names& names) {
  return {names.begin(), names.end()};
}

TEST(Config, ChoicesAreTheAlgorithmsOwnNames) {
  EXPECT_EQ(config::find_field("sft.loss")->choices, listed(names_of(algorithms::SftLossKind{})));
  EXPECT_EQ(config::find_field("grpo.kl")->choices, listed(names_of(algorithms::KlEstimator{})));
  EXPECT_EQ(config::find_field("dpo.loss")->choices, listed(names_of(algorithms::DpoLossKind{})));
  EXPECT_EQ(config::find_field("grpo.aggregation")->choices,
            listed(names_of(algorithms::GrpoLoss::Aggregation{})));
  EXPECT_EQ(config::find_field("grpo.scale_rewards")->choices,
            listed(names_of(algorithms::GroupScale{})));
}

TEST(ExitCode, EveryKindHasItsOwn) {
  std::vector<int> codes;
  for (int code = 0; code <= static_cast<int>(Errc::internal); ++code)
    codes.push_back(run::exit_code(static_cast<Errc>(code)));
  std::sort(codes.begin(), codes.end());
  EXPECT_EQ(std::adjacent_find(codes.begin(), codes.end()), codes.end());
  EXPECT_GT(codes.front(), 1);
}

}  // namespace
}  // namespace troupe::launch::config_test
