// The command eval: the summary against plain loops, and the output file: resumed, repaired,
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "algorithms/training/estimators.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/commands/eval/output_file.h"
#include "launch/commands/eval/summary.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Json item(const char* text) {
  return value_or_throw(parse_json(text, "item"));
}

const commands::Estimate& estimate(const commands::EvalSummary& summary, const std::string& name) {
  for (const commands::Estimate& each : summary.estimates)
    if (each.name == name) return each;
  throw std::runtime_error("no estimate " + name);
}

TEST(EvalSummary, OfOneCompletionPerItemIsAnAccuracy) {
  std::vector<Json> lines;
  for (int i = 0; i < 10; ++i)
    lines.push_back(item(i < 3 ? R"({"rewards":[1],"tokens":[4],"finish_reasons":["stop"]})"
                               : R"({"rewards":[0.5],"tokens":[8],"finish_reasons":["length"]})"));
  const auto summary = value_or_throw(commands::summarize(lines, 1));
  const auto& accuracy = estimate(summary, "accuracy");
  EXPECT_DOUBLE_EQ(accuracy.value, 0.3);
  EXPECT_EQ(accuracy.interval->low, algorithms::wilson_interval(3, 10).low);
  EXPECT_DOUBLE_EQ(estimate(summary, "reward").value, 0.65);
  EXPECT_DOUBLE_EQ(estimate(summary, "completions/mean_length").value, 6.8);
  EXPECT_DOUBLE_EQ(estimate(summary, "completions/clipped_ratio").value, 0.7);
  EXPECT_DOUBLE_EQ(estimate(value_or_throw(commands::summarize(lines, 0.5)), "accuracy").value, 1);
  EXPECT_THAT(commands::summary_text(summary),
              testing::StartsWith("accuracy 0.3 (95 % interval 0.108 to 0.603, Wilson)\n"));
}

TEST(EvalSummary, OfSeveralCompletionsIsPassAtK) {
  const std::vector<Json> lines{
      item(
          R"({"rewards":[1,0,0,0],"tokens":[1,1,1,1],"finish_reasons":["stop","stop","stop","stop"],
               "parts":{"a":[1,0,0,0],"b":[1,1,1,1]}})"),
      item(
          R"({"rewards":[1,null,1,1],"tokens":[1,1,1,1],"finish_reasons":["stop","stop","stop","stop"],
               "parts":{"a":[1,0,1,1]},"failures":[null,"b: timeout",null,null]})")};
  const auto summary = value_or_throw(commands::summarize(lines, 1));
  EXPECT_EQ(summary.samples, 4);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(summary.failure, "b: timeout");
  EXPECT_DOUBLE_EQ(estimate(summary, "pass@1").value, 0.5);
  EXPECT_DOUBLE_EQ(estimate(summary, "pass@2").value, (0.5 + 1) / 2);
  EXPECT_DOUBLE_EQ(estimate(summary, "pass@4").value, 1);
  EXPECT_DOUBLE_EQ(estimate(summary, "reward").value, (0.25 + 1) / 2) << "without the failure";
  EXPECT_DOUBLE_EQ(estimate(summary, "rewards/b/mean").value, 1);
  const std::vector<double> items{0.25, 0.75};
  EXPECT_EQ(estimate(summary, "pass@1").interval->high,
            algorithms::clustered_interval(items, 4).high);
  EXPECT_EQ(estimate(summary, "pass@1").method, "clustered Wilson");
  // Both items pass: the interval of two items, not of length 0.
  EXPECT_EQ(estimate(summary, "pass@4").interval->low, algorithms::wilson_interval(2, 2).low);
}

TEST(EvalSummary, ClaimsNoCertaintyWhereAllItemsAreEqual) {
  std::vector<Json> lines;
  for (int i = 0; i < 20; ++i)
    lines.push_back(item(R"({"rewards":[0,0,0,0],"tokens":[1,1,1,1],
                 "finish_reasons":["stop","stop","stop","stop"]})"));
  const auto summary = value_or_throw(commands::summarize(lines, 1));
  EXPECT_EQ(estimate(summary, "pass@1").value, 0);
  EXPECT_NEAR(estimate(summary, "pass@1").interval->high, 0.16113, 5e-6) << "Wilson, 0 of 20";
  EXPECT_FALSE(estimate(summary, "reward").interval);
  EXPECT_THAT(commands::summary_text(summary), HasSubstr("\nreward 0\n"));
}

TEST(EvalSummary, OfOtherLinesIsRefused) {
  EXPECT_EQ(commands::summarize({item(R"({"reward":1})")}, 1).error().code, Errc::corrupt);
  EXPECT_EQ(
      commands::summarize({item(R"({"rewards":[1],"tokens":[1,2],"finish_reasons":["stop"]})")}, 1)
          .error()
          .code,
      Errc::corrupt);
}

Json settings(int length) {
  return Json::Object{{"data", "abc"}, {"settings", Json(Json::Object{{"length", length}})}};
}

std::vector<std::string> kept(const Result<commands::EvalFile>& file) {
  std::vector<std::string> out;
  if (!file) return {file.error().what};
  for (const Json& line : file->lines()) out.push_back(line.dump());
  return out;
}

TEST(EvalFile, ContinuesAfterTheLastCompleteLine) {
  const std::string path = scratch_folder() + "/answers.jsonl";
  {
    auto file = value_or_throw(commands::EvalFile::open(path, settings(1), 3));
    EXPECT_TRUE(file.lines().empty());
    ASSERT_TRUE(file.append(item(R"({"id":0})")));
    ASSERT_TRUE(file.append(item(R"({"id":1})")));
    EXPECT_THAT(commands::EvalFile::open(path, settings(1), 3).error().what,
                HasSubstr("another process is writing"));
  }
  const std::string whole = value_or_throw(read_file(path));
  for (std::size_t cut = 0; cut < 9; ++cut) {
    ASSERT_TRUE(write_file_durably(path, whole.substr(0, whole.size() - cut)));
    auto file = commands::EvalFile::open(path, settings(1), 3);
    if (cut == 0)
      EXPECT_THAT(kept(file), ElementsAre(R"({"id":0})", R"({"id":1})"));
    else
      EXPECT_THAT(kept(file), ElementsAre(R"({"id":0})")) << cut;
    if (cut > 0) {
      ASSERT_TRUE(file->append(item(R"({"id":1})")));
    }
    EXPECT_EQ(value_or_throw(read_file(path)), whole) << cut;
  }
}

TEST(EvalFile, OfAnotherCommandIsRefused) {
  const std::string path = scratch_folder() + "/answers.jsonl";
  ASSERT_TRUE(
      value_or_throw(commands::EvalFile::open(path, settings(1), 3)).append(item(R"({"id":0})")));
  const auto other = commands::EvalFile::open(path, settings(2), 3);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::usage);
  EXPECT_THAT(other.error().what, HasSubstr("settings/length (1, now 2)"));
  std::filesystem::remove(path + ".settings.json");
  EXPECT_THAT(kept(commands::EvalFile::open(path, settings(1), 3)),
              ElementsAre(HasSubstr("the settings that it was written with cannot be read")));
}

TEST(EvalFile, WithAnotherItemIsRefused) {
  const std::string path = scratch_folder() + "/answers.jsonl";
  const auto why = [&](const std::string& text, std::size_t items) {
    std::filesystem::remove(path);
    { value_or_throw(commands::EvalFile::open(path, settings(1), items)); }
    EXPECT_TRUE(write_file_durably(path, text));
    const auto file = commands::EvalFile::open(path, settings(1), items);
    return file ? "read" : file.error().what;
  };
  EXPECT_THAT(why("{\"id\":0}\n{\"id\":2}\n", 3), HasSubstr("answers.jsonl:2: expected item 1"));
  EXPECT_THAT(why("{\"id\":0}\n{\"id\":1}\n", 1), HasSubstr("expected the end of the file"));
  EXPECT_THAT(why("{\"id\":0}\nnonsense\n", 3), HasSubstr("answers.jsonl:2"));
}

std::string eval_command(const std::string& more) {
  return cat("eval --model '", data("models/digit-completion"), "' --max-new-tokens 12 ", more);
}

TEST(Eval, PrintsAndWritesTheSameHoweverItIsRun) {
  const std::string folder = scratch_folder(), rows = folder + "/rows.jsonl";
  std::string text;
  for (int i = 0; i < 9; ++i)
    text += cat(R"({"prompt":"1,)", i, R"(:9,2S","answer":")", i, "\"}\n");
  ASSERT_TRUE(write_file_durably(rows, text));
  const auto run = [&](const std::string& more) {
    const ProgramOutput said = run_program(
        eval_command(cat("--data '", rows, "' --reward exact_match --n 4 --seed 3 ", more)));
    EXPECT_EQ(said.code, 0) << said.err;
    return said.out;
  };
  const std::string printed = run(cat("--output '", folder, "/one.jsonl' --threads 1"));
  EXPECT_THAT(printed, HasSubstr("\nitems 9\ncompletions_per_item 4\nfailed_rewards 0\n"));
  EXPECT_EQ(run(cat("--output '", folder, "/two.jsonl' --threads 2")), printed);
  EXPECT_EQ(run("--set rollout.max_sequences=1"), printed) << "without a file, in other batches";
  const std::string whole = value_or_throw(read_file(folder + "/one.jsonl"));
  EXPECT_EQ(value_or_throw(read_file(folder + "/two.jsonl")), whole);
  for (const int sequences : {1, 3, 5}) {  // one at a time; a part of an item and of the next one
    const std::string file = cat(folder, "/batches", sequences, ".jsonl");
    EXPECT_EQ(run(cat("--output '", file, "' --set rollout.max_sequences=", sequences)), printed);
    EXPECT_EQ(value_or_throw(read_file(file)), whole) << sequences;
  }
  ASSERT_TRUE(write_file_durably(folder + "/one.jsonl", whole.substr(0, whole.size() / 2)));
  EXPECT_EQ(run(cat("--output '", folder, "/one.jsonl'")), printed);
  EXPECT_EQ(value_or_throw(read_file(folder + "/one.jsonl")), whole);
  const Json line = json_lines(whole).front();
  EXPECT_EQ(line.find("prompt")->string(), "1,0:9,2S");
  EXPECT_EQ(line.find("completions")->array().size(), 4u);
  EXPECT_EQ(line.find("rewards")->array().size(), 4u);
  EXPECT_EQ(line.find("parts")->find("exact_match")->array().size(), 4u);
  const ProgramOutput other = run_program(
      eval_command(cat("--data '", rows, "' --reward exact_match --n 4 --seed 4 --output '", folder,
                       "/one.jsonl'")));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("settings/train.seed"));
}

TEST(Eval, RefusesWhatItCannotScore) {
  const std::string folder = scratch_folder(), rows = folder + "/rows.jsonl";
  ASSERT_TRUE(write_file_durably(rows, "{\"prompt\":\"1,2:9,2S\"}\n"));
  const ProgramOutput no_answer =
      run_program(eval_command(cat("--data '", rows, "' --reward exact_match")));
  EXPECT_NE(no_answer.code, 0);
  EXPECT_THAT(no_answer.err, HasSubstr("answer"));
  const ProgramOutput no_rule =
      run_program(eval_command(cat("--data '", rows, "' --reward exact_mach")));
  EXPECT_EQ(no_rule.code, 2);
  EXPECT_THAT(no_rule.err, HasSubstr("did you mean exact_match?"));
  const ProgramOutput no_file =
      run_program(eval_command("--data /none.jsonl --reward exact_match"));
  EXPECT_THAT(no_file.err, HasSubstr("/none.jsonl"));
  const ProgramOutput greedy =
      run_program(eval_command(cat("--data '", rows, "' --reward format --n 2 --temperature 0")));
  EXPECT_EQ(greedy.code, 2);
  EXPECT_THAT(greedy.err, HasSubstr("are all equal"));
}

TEST(Eval, APythonFunctionGetsWholeGroupsAndTheirRows) {
  const std::string folder = scratch_folder();
  ASSERT_TRUE(write_file_durably(folder + "/levels.py",
                                 "def f(prompts, completions, level, answer, **kwargs):\n"
                                 "    assert prompts[0] == '8,3:9,4' or answer[0] == '3'\n"
                                 "    return [10 * each + len(completions) for each in level]\n"));
  std::filesystem::permissions(folder + "/levels.py", std::filesystem::perms(0644));
  ASSERT_TRUE(write_file_durably(folder + "/rows.jsonl",
                                 R"({"prompt":"8,3:9,4","answer":"7,2,6,1","level":2})"
                                 "\n"
                                 R"({"prompt":"3,3:9,6","answer":"3","level":5})"
                                 "\n"));
  const ProgramOutput said =
      run_program(cat("eval --model ", data("models/digit-completion"), " --data ", folder,
                      "/rows.jsonl --output ", folder,
                      "/items.jsonl --n 3 --max-new-tokens 4 --reward '[{rule: "
                      "python, function: ",
                      folder, "/levels.py:f}]'"));
  if (said.err.find("isolation: limits") != std::string::npos) GTEST_SKIP() << said.err;
  ASSERT_EQ(said.code, 0) << said.err;
  const std::string items = value_or_throw(read_file(folder + "/items.jsonl"));
  EXPECT_THAT(items, HasSubstr(R"("rewards":[23.0,23.0,23.0])"));
  EXPECT_THAT(items, HasSubstr(R"("rewards":[53.0,53.0,53.0])"));
}

}  // namespace
}  // namespace troupe::launch
