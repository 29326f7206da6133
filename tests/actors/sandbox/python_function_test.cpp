// The rule `python`: published reward functions of TRL, verl and OpenRLHF are called unchanged and
// give the values that they give in plain Python; what is wrong with a function is named.
#include "actors/roles/rules/python_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "actors/roles/rules/python_environment.h"
#include "actors/roles/rules/rules.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/actors/sandbox/marked.h"

namespace troupe::actors::rules {
namespace {

using protocol::FailureKind;
using protocol::RewardRequest;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

const std::string published = TROUPE_TEST_DATA "/reward_functions/";

Json json(const std::string& text) {
  return value_or_throw(parse_json(text, "test"));
}

/// What a command prints.
std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  for (int c; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return out;
}

/// The numbers that a Python program prints, one a line.
std::vector<double> plain_python(const std::string& folder, const std::string& program) {
  std::istringstream lines(output_of(cat("cd '", folder, "' && PYTHONPATH='", published,
                                         "stand_ins' python3 -B -c '", program, "'")));
  std::vector<double> out;
  for (double value; lines >> value;) out.push_back(value);
  return out;
}

class PythonFunction : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto denied = sandbox::denied(sandbox::Isolation::namespaces); !denied.empty())
      GTEST_SKIP() << "SKIP: " << denied;
    std::string name = testing::TempDir() + "python-function-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  }
  void TearDown() override {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(write_file_durably(path, text));
    std::filesystem::permissions(path, std::filesystem::perms(0644));
    return path;
  }
  static Rules rules(const std::string& function, const std::string& options = "") {
    return value_or_throw(
        Rules::from_json(json(cat(R"([{"name": "python", "options": {"function": ")", function, '"',
                                  options.empty() ? "" : ", ", options, "}}]")),
                         "reward"));
  }
  /// Why a function is refused at the start.
  static std::string refusal(const std::string& function, const std::string& options = "") {
    const auto made = rules(function, options);
    if (const auto found = made.check_files(); !found) return found.error().what;
    const auto started = made.start();
    return started ? "started" : started.error().what;
  }
  /// A function of TRL's kind, which returns `body`.
  std::string returning(const std::string& body) const {
    return file("returns.py", cat("def f(completions, **kwargs):\n    ", body, '\n')) + ":f";
  }

  std::string folder_;
};

/// Completions of one prompt.
std::vector<RewardRequest> group_of(const std::vector<std::string>& completions,
                                    const Json& answer = {}, const std::string& row = "{}",
                                    const Json& messages = {}, std::uint64_t prompt_id = 0) {
  std::vector<RewardRequest> out;
  for (const std::string& each : completions) {
    RewardRequest request{"What is 3 + 4?", each, answer, {1, 2}, {3, 4, 5}};
    request.row = json(row);
    request.messages = messages;
    request.prompt_id = prompt_id;
    out.push_back(std::move(request));
  }
  return out;
}

std::vector<double> rewards_of(const Rules& rules, const std::vector<RewardRequest>& requests) {
  std::vector<double> out;
  for (const auto& result : rules.score(requests)) {
    EXPECT_TRUE(result.reward) << result.failure;
    out.push_back(result.reward.value_or(-99));
  }
  return out;
}

TEST_F(PythonFunction, TrlsFormatRewardOfConversations) {
  const std::vector<std::string> texts{"<think>\na\n</think>\n7", "<think>\na\n7",
                                       "x<think>a</think>7", "<think>a<think></think>7"};
  const Json messages = json(R"([{"role": "user", "content": "What is 3 + 4?"}])");
  const auto expected =
      plain_python(published,
                   "import trl_format_rewards as m\n"
                   "for r in m.think_format_reward([[{\"content\": t}] for t in "
                   "[\"<think>\\na\\n</think>\\n7\", \"<think>\\na\\n7\", \"x<think>a</think>7\", "
                   "\"<think>a<think></think>7\"]]): print(r)");
  ASSERT_THAT(expected, ElementsAre(1, 0, 0, 0));
  EXPECT_EQ(rewards_of(rules(published + "trl_format_rewards.py:think_format_reward"),
                       group_of(texts, "7", R"({"level": 3})", messages)),
            expected);
}

TEST_F(PythonFunction, VerlsScoreOfGsm8k) {
  const std::vector<std::string> texts{"so #### 1,234", "so #### 1234.0", "1234", "#### -2"};
  const auto expected =
      plain_python(published,
                   "import verl_gsm8k as m\n"
                   "for t in [\"so #### 1,234\", \"so #### 1234.0\", \"1234\", \"#### -2\"]:\n"
                   "  print(m.compute_score(t, \"1234\", format_score=0.25))");
  ASSERT_THAT(expected, ElementsAre(1, 0.25, 0, 0.25));
  EXPECT_EQ(rewards_of(rules(published + "verl_gsm8k.py:compute_score",
                             R"("signature": "verl", "arguments": {"format_score": 0.25})"),
                       group_of(texts, "1234", R"({"data_source": "openai/gsm8k"})")),
            expected);
}

TEST_F(PythonFunction, OpenRlhfsMathReward) {
  const std::vector<std::string> texts{"\\boxed{7}", "\\boxed{8}", "7"};
  const auto expected = plain_python(published,
                                     "import openrlhf_math_reward_func as m, sys, io\n"
                                     "out, sys.stdout = sys.stdout, io.StringIO()\n"
                                     "r = m.reward_func([\"q\\\\boxed{7}\", \"q\\\\boxed{8}\", "
                                     "\"q7\"], [\"q\"] * 3, [\"7\"] * 3)\n"
                                     "for each in r[\"rewards\"]: print(each, file=out)\n"
                                     "print(r[\"extra_logs\"][\"math_accuracy\"], file=out)");
  ASSERT_EQ(expected.size(), 4u);
  ::setenv("PYTHONPATH", (published + "stand_ins").c_str(), 1);
  const auto made =
      rules(published + "openrlhf_math_reward_func.py:reward_func", R"("signature": "openrlhf")");
  const auto results = made.score(group_of(texts, "7"));
  ::unsetenv("PYTHONPATH");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(results[i].reward.value_or(-99), expected[i]) << results[i].failure;
    bool found = false;
    for (const auto& [name, value] : results[i].parts)
      if (name == "python/math_accuracy") {
        found = true;
        EXPECT_EQ(value, expected[3]);
      }
    EXPECT_TRUE(found);
  }
}

TEST_F(PythonFunction, WholeGroupsWithTheColumnsOfTheirRow) {
  const auto made = rules(
      file("group.py",
           "def f(prompts, completions, completion_ids, level, answer, log_metric):\n"
           "    print('a line on standard output')\n"
           "    assert all(isinstance(c, str) for c in completions) and completion_ids[0] == [3, "
           "4, 5]\n"
           "    log_metric('size', len(prompts))\n"
           "    return [len(completions) + 10 * l + 100 * int(a) for l, a in zip(level, "
           "answer)]\n") +
      ":f");
  auto requests = group_of({"a", "b", "c"}, "7", R"({"level": 1, "answer": "7"})", {}, 1);
  for (auto& each : group_of({"d", "e"}, "8", R"({"level": 2, "answer": "8"})", {}, 2))
    requests.push_back(std::move(each));
  EXPECT_THAT(rewards_of(made, requests), ElementsAre(713, 713, 713, 822, 822));
  const auto results = made.score(requests);
  EXPECT_EQ(results[4].parts.back(), (std::pair<std::string, double>("python/size", 2)));
}

TEST_F(PythonFunction, NoneIsNoReward) {
  const std::string skips = returning("return [None if 'skip' in c else 2 for c in completions]");
  const auto alone = rules(skips).score(group_of({"a", "skip"}));
  EXPECT_EQ(alone[0].reward.value_or(-99), 2);
  EXPECT_FALSE(alone[1].reward);
  EXPECT_THAT(alone[1].failure, HasSubstr("no rule gives this completion a reward"));
  const auto two = value_or_throw(Rules::from_json(
      json(cat(R"([{"name": "python", "options": {"function": ")", skips,
               R"("}}, {"name": "regex", "weight": 0.5, "options": {"pattern": "."}}])")),
      "reward"));
  const auto results = two.score(group_of({"a", "skip"}));
  EXPECT_EQ(results[0].reward.value_or(-99), 2.5);
  EXPECT_EQ(results[1].reward.value_or(-99), 0.5) << "as in TRL, the other rules count";
  EXPECT_EQ(results[1].parts.size(), 1u);
}

TEST_F(PythonFunction, ResultsThatAreNoRewardsAreNamed) {
  const auto why = [&](const std::string& body, const std::string& first = "a") {
    const auto result = rules(returning(body)).score(group_of({first, "b"}))[0];
    EXPECT_FALSE(result.reward) << body;
    EXPECT_THAT(result.failure_kinds, ElementsAre(FailureKind::crash)) << body;
    return result.failure;
  };
  const std::string good = "if completions[0] == 'good': return [1] * len(completions)\n    ";
  EXPECT_THAT(why(good + "return [1]"),
              HasSubstr("has 1 items for 2 completions: expected one for each"));
  EXPECT_THAT(why(good + "return [1, float('nan')]"),
              HasSubstr("the function's result[1] is nan: expected a finite number, or None"));
  EXPECT_THAT(why(good + "return 'abc'"), HasSubstr("is str: expected a list of 2 numbers"));
  EXPECT_THAT(why(good + "return [1, 'abc']"), HasSubstr("result[1] is str 'abc'"));
  EXPECT_THAT(why(good + "raise ValueError('bad row')"),
              HasSubstr("the function raised ValueError: bad row (returns.py, line 3, in f)"));
  EXPECT_THAT(why(good + "import sys; sys.exit(0)"),
              HasSubstr("the function raised SystemExit: 0"));
  const auto large = rules(returning("return [1e7, 1]")).score(group_of({"a", "b"}))[0];
  EXPECT_THAT(large.failure, HasSubstr("\"rewards[0]\" is 1e+07, beyond 1e+06"));
}

TEST_F(PythonFunction, WhatCannotBeCalledIsRefusedAtTheStart) {
  const std::string path = file("two.py", "def one(completions): return [1]\nlimit = 3\n");
  EXPECT_EQ(refusal(folder_ + "/none.py:f"),
            cat("reward[0].function: no file ", quote(folder_ + "/none.py", 400)));
  EXPECT_THAT(refusal(path + ":tow"), AllOf(HasSubstr("tow is not there"), HasSubstr("one"),
                                            HasSubstr("write function: two.py:NAME")));
  EXPECT_THAT(refusal(path + ":limit"), HasSubstr("limit is not a function"));
  EXPECT_THAT(refusal(published + "verl_gsm8k.py:compute_score"),
              HasSubstr("compute_score takes solution_str: write signature: verl"));
  EXPECT_THAT(refusal(file("imports.py", "import a_module_that_is_nowhere\n") + ":f"),
              AllOf(HasSubstr("ModuleNotFoundError: No module named 'a_module_that_is_nowhere' "
                              "(imports.py, line 1"),
                    HasSubstr("`python` of the rule chooses another one")));
  EXPECT_THAT(refusal(file("broken.py", "def f(:\n") + ":f"),
              HasSubstr("cannot be imported: SyntaxError"));
  EXPECT_THAT(
      refusal(path + ":one", R"("python": "/no/such/python")"),
      HasSubstr("reward[0].python: cannot run \"/no/such/python\": No such file or directory"));
  EXPECT_THAT(refusal(path + ":one", R"("python": "/bin/echo")"),
              HasSubstr("\"/bin/echo\" is no Python 3.8 or newer"));
  EXPECT_EQ(refusal(path + ":one"), "started");
}

TEST_F(PythonFunction, OptionsAreChecked) {
  const auto why = [](const std::string& options) {
    const auto made = make_rule("python", json(options), "reward[0]");
    return made ? "made" : made.error().what;
  };
  EXPECT_EQ(why("{}"), "reward[0].function: expected FILE.py:NAME, found none");
  EXPECT_EQ(why(R"({"function": "f.py"})"),
            "reward[0].function: expected FILE.py:NAME, found \"f.py\"");
  EXPECT_THAT(why(R"({"function": "f.py:g h"})"), HasSubstr("expected FILE.py:NAME"));
  EXPECT_THAT(why(R"({"function": "f.py:g", "signature": "vrel"})"), HasSubstr("verl"));
  EXPECT_THAT(why(R"({"function": "f.py:g", "arguments": [1]})"),
              HasSubstr("expected a map of names and values, found array"));
  EXPECT_THAT(why(R"({"function": "f.py:g", "workers": 0})"), HasSubstr("workers = 0"));
  EXPECT_EQ(why(R"({"function": "f.py:g"})"), "made");
}

TEST_F(PythonFunction, AMissingColumnAndAnArgumentTooManyAreNamed) {
  const std::string path = file("needs.py", "def f(completions, solution): return [1]\n") + ":f";
  const auto missing = rules(path).score(group_of({"a"}, {}, R"({"level": 1, "answer": "7"})"))[0];
  EXPECT_THAT(missing.failure, HasSubstr("the function takes solution, which is no column of the "
                                         "rows (they have answer, level); rename a column"));
  const auto given = rules(path, R"("arguments": {"solution": "7", "mode": 1})");
  EXPECT_THAT(given.score(group_of({"a"}))[0].failure,
              HasSubstr("takes no argument mode, which `arguments` of the rule has"));
  const auto verl =
      rules(file("verl.py",
                 "def score(data_source, solution_str, ground_truth, extra_info):\n"
                 "    return {'score': extra_info['n'], 'acc': True, 'why': 'text'}\n") +
                ":score",
            R"("signature": "verl")");
  EXPECT_THAT(
      verl.score(group_of({"a"}, "7", R"({"extra_info": {"n": 3}})"))[0].failure,
      HasSubstr("takes data_source, which is no column of the rows (they have extra_info)"));
  const auto result =
      verl.score(group_of({"a"}, "7", R"({"data_source": "d", "extra_info": {"n": 3}})"))[0];
  EXPECT_EQ(result.reward.value_or(-99), 3) << result.failure;
  EXPECT_EQ(result.parts.back(), (std::pair<std::string, double>("python/acc", 1)));
}

TEST_F(PythonFunction, AsyncFunctionsCallablesAndBatchesOfVerl) {
  EXPECT_THAT(rewards_of(rules(file("later.py",
                                    "import asyncio\n"
                                    "async def f(completions, **kwargs):\n"
                                    "    await asyncio.sleep(0)\n"
                                    "    return [len(c) for c in completions]\n") +
                               ":f"),
                         group_of({"a", "bb"})),
              ElementsAre(1, 2));
  EXPECT_THAT(
      rewards_of(rules(file("made.py",
                            "class Length:\n"
                            "    def __init__(self, by): self.by = by\n"
                            "    def __call__(self, completion_ids, **kwargs):\n"
                            "        return [len(ids) / self.by for ids in completion_ids]\n"
                            "class Rewards: half = Length(2)\n") +
                       ":Rewards.half"),
                 group_of({"a", "bb"})),
      ElementsAre(1.5, 1.5));
  EXPECT_THAT(
      rewards_of(rules(file("batch.py",
                            "def f(data_sources, solution_strs, ground_truths, extra_infos):\n"
                            "    return [float(s == g) for s, g in zip(solution_strs, "
                            "ground_truths)]\n") +
                           ":f",
                       R"("signature": "verl")"),
                 group_of({"7", "8"}, "7", R"({"data_source": "d"})")),
      ElementsAre(1, 0));
}

TEST_F(PythonFunction, SeesTheModulesOfAVirtualEnvironment) {
  const std::string venv = folder_ + "/venv";
  output_of(cat("/usr/bin/python3 -m venv --without-pip '", venv, "' >&2"));
  const std::string site = output_of(
      cat("'", venv, "/bin/python' -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))'"));
  const std::string module = site.substr(0, site.find('\n')) + "/only_here.py";
  ASSERT_TRUE(write_file_durably(module, "value = 5\n"));
  std::filesystem::permissions(module, std::filesystem::perms(0644));
  const std::string function =
      file("uses.py",
           "import only_here, sys\n"
           "def f(completions, **kwargs): return [only_here.value + ('venv' in sys.prefix)] * "
           "len(completions)\n") +
      ":f";
  EXPECT_THAT(
      rewards_of(rules(function, cat(R"("python": ")", venv, R"(/bin/python")")), group_of({"a"})),
      ElementsAre(6));
  EXPECT_THAT(refusal(function), HasSubstr("No module named 'only_here'"));
  const auto found = value_or_throw(python_environment(venv + "/bin/python", "reward[0]"));
  EXPECT_THAT(found.folders, testing::Contains(venv));
  EXPECT_THAT(found.program, EndsWith("/venv/bin/python"));
}

}  // namespace
}  // namespace troupe::actors::rules
