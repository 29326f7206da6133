// The command line of train and explain: options for common settings, settings without --set, and
// what the parser says of a mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/run/exit_code.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string math_rows = data("datasets/math/gsm8k_train_head.jsonl");

/// explain over a model and data that are there.
ProgramOutput explained(const std::string& more) {
  return run_program(cat("explain --algorithm sft --model ", data("models/stories260k/hf"),
                         " --data ", math_rows, " ", more));
}

/// A line of explain's table.
std::string table_line(std::string key, std::string value, const std::string& origin) {
  key.resize(std::max<std::size_t>(30, key.size() + 1), ' ');
  value.resize(std::max<std::size_t>(28, value.size() + 1), ' ');
  return cat("\n  ", key, value, origin, "\n");
}

TEST(Arguments, CommonSettingsHaveOptions) {
  const ProgramOutput said = explained("--output O --steps 7 --resume never");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out,
              AllOf(HasSubstr(table_line("output", "O", "--output")),
                    HasSubstr(table_line("resume", "never", "--resume")),
                    HasSubstr(table_line("train.steps", "7", "--steps")),
                    HasSubstr(table_line("model", data("models/stories260k/hf"), "--model"))));
  const ProgramOutput several = explained(cat(math_rows, " --output O"));
  ASSERT_EQ(several.code, 0) << several.err;
  EXPECT_THAT(several.out, HasSubstr(table_line(
                               "data.path", cat("[", math_rows, ", ", math_rows, "]"), "--data")));
}

TEST(Arguments, SettingsNeedNoSet) {
  const ProgramOutput said =
      explained("output=O train.steps=5 --set train.steps=6 train.batch_size=3");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr(table_line("train.steps", "6", "--set")),
                              HasSubstr(table_line("train.batch_size", "3", "--set"))));
}

TEST(Arguments, LaunchTakesThemBehindTheDashes) {
  const std::string cluster = scratch_folder() + "/cluster.yaml";
  ASSERT_TRUE(write_file_durably(cluster, "groups: [{role: policy}]\n"));
  const ProgramOutput said = run_program(cat("launch --cluster ", cluster,
                                             " -- train --algorithm sft --model /no/model --data ",
                                             math_rows, " --output O train.steps=2"));
  EXPECT_EQ(said.code, run::exit_code(Errc::not_found));
  EXPECT_THAT(said.err, AllOf(HasSubstr("the configuration has a problem:"),
                              HasSubstr("model = \"/no/model\": no such directory")));
}

TEST(Arguments, OneSettingMayNotBeGivenInTwoWays) {
  const ProgramOutput said = explained("--output O --set output=P");
  EXPECT_EQ(said.code, run::exit_usage);
  EXPECT_THAT(said.err, HasSubstr("output is given twice: --set P and --output O"));
  EXPECT_EQ(explained("--output O --set output=O").code, 0);
}

struct Mistake {
  const char* words;
  const char* answer;
};

TEST(Arguments, MistakesAreAnsweredWithWhatIsMeant) {
  for (const Mistake& each : {
           Mistake{"train --modle x --output y",
                   "troupe: train: unknown option --modle; did you mean --model?"},
           Mistake{"train stray --output y",
                   "troupe: train: unexpected argument \"stray\"; options begin with --"},
           Mistake{"train --num_generations 8",
                   "unknown option --num_generations; TRL: write grpo.group_size"},
           Mistake{"train --learning-rate 1e-5",
                   "unknown option --learning-rate; TRL, LLaMA-Factory"},
           Mistake{"train --train.steps 5", "it is a setting: --set train.steps=VALUE"},
           Mistake{"generate --modle x",
                   "troupe: generate: unknown option --modle; did you mean --model?"},
           Mistake{"generate", "troupe: generate: --model is required"},
           Mistake{"train --model", "troupe: train: --model"},
           Mistake{"launch --cluster F train --algorithm sft",
                   "troupe: launch: `--` is missing before train"},
           Mistake{"launch --cluster F -- train --algoritm sft",
                   "troupe: launch: train: unknown option --algoritm; did you mean --algorithm?"},
           Mistake{"launch --cluster F -- generate",
                   "can only start train or explain; found \"generate\""},
           Mistake{"trian", "troupe: unknown command \"trian\""},
       }) {
    const ProgramOutput said = run_program(each.words);
    EXPECT_EQ(said.code, run::exit_usage) << each.words;
    EXPECT_THAT(said.err, HasSubstr(each.answer)) << each.words;
    EXPECT_THAT(said.err, StartsWith("troupe: ")) << each.words;
    EXPECT_THAT(said.err, Not(HasSubstr("were not expected"))) << each.words;
  }
}

TEST(Arguments, HelpIsPrintedToStdout) {
  for (const char* words : {"--help", "train --help"}) {
    const ProgramOutput said = run_program(words);
    EXPECT_EQ(said.code, 0) << words;
    EXPECT_THAT(said.out, HasSubstr("Usage")) << words;
  }
  EXPECT_THAT(run_program("train --help").out,
              AllOf(HasSubstr("--model"), HasSubstr("--data"), HasSubstr("--output"),
                    HasSubstr("--resume"), HasSubstr("--steps")));
}

}  // namespace
}  // namespace troupe::launch
