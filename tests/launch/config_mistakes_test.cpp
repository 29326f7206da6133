// Common mistakes in a configuration: each is one problem with the setting to write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/recipes/resolve.h"
#include "launch/recipes/validate.h"
#include "tests/launch/program.h"

namespace troupe::launch::config_mistakes_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// The message for a run that is complete but for `sets` and the content of a run file.
std::string refusal(std::vector<std::string> sets, const std::string& content = "") {
  const std::string file = content.empty() ? "" : scratch_folder() + "/run.yaml";
  if (!file.empty()) {
    EXPECT_TRUE(write_file_durably(file, content));
  }
  for (const char* needed : {"model=M", "output=O"}) sets.emplace_back(needed);
  const auto got = recipes::resolve(
      {.algorithm = "grpo", .file = file, .sets = std::move(sets), .check_files = false});
  return got ? "accepted" : got.error().what;
}

struct Mistake {
  const char* set;
  const char* message;
};

TEST(ConfigMistakes, EachIsOneProblemThatStatesWhatToWrite) {
  for (const Mistake& each :
       {Mistake{"profile.enable=true", "did you mean profile.enabled?"},
        Mistake{"grpo.group_sise=4", "did you mean grpo.group_size?"},
        Mistake{"grpo.gruop_size=4", "did you mean grpo.group_size?"},
        Mistake{"train.num_epochs=2", "did you mean train.epochs?"},
        Mistake{"critic.learning_rat=1e-5", "did you mean critic.learning_rate?"},
        Mistake{"rollout.temperature=-1",
                "rollout.temperature = -1 (--set): must be 0, or at least 0.001, at most 1000; the "
                "nearest valid value is 0"},
        Mistake{"reward.rule=boxed", "reward is one value and not a section; set all of it"},
        Mistake{"reward=[boxed", "the bracket [ is not closed"},
        Mistake{"reward=[{rule: boxed, wight: 2}]", "unknown key \"wight\"; did you mean weight?"},
        Mistake{"reward=[{rule: boxed, strip: true}]",
                "unknown key \"strip\"; the known keys are tolerance"}}) {
    std::vector<std::string> sets{each.set, "data.path=D"};
    if (!std::string_view(each.set).starts_with("reward")) sets.emplace_back("reward=boxed");
    EXPECT_THAT(refusal(sets),
                AllOf(HasSubstr("the configuration has a problem:"), HasSubstr(each.message)));
  }
}

TEST(ConfigMistakes, PathsThatDoNotExistAreAnsweredWithWhatIsThere) {
  namespace fs = std::filesystem;
  const std::string folder = scratch_folder(), model = data("models/stories260k/hf");
  EXPECT_TRUE(
      write_file_durably(folder + "/rows.jsonl", "{\"prompt\":\"a\",\"completion\":\"b\"}\n"));
  fs::create_directories(folder + "/run/latest");
  fs::copy_file(model + "/config.json", folder + "/run/latest/config.json");
  const auto said = [&](const std::string& of_model, const std::string& rows) {
    return run_program(cat("train --algorithm sft --model ", of_model, " --data ", rows,
                           " --output ", folder, "/out"))
        .err;
  };
  EXPECT_THAT(said(model, folder + "/rows.json"),
              HasSubstr(cat("did you mean \"", folder, "/rows.jsonl\"?")));
  EXPECT_THAT(said(model, "some-org/some-set"),
              HasSubstr("hf download some-org/some-set --repo-type dataset"));
  EXPECT_THAT(said(folder + "/run", folder + "/rows.jsonl"),
              HasSubstr(cat("it is the folder of a run: name ", folder, "/run/latest")));
}

TEST(ConfigMistakes, AnAdapterRunIsNotContinuedWithoutIt) {
  const std::string folder = scratch_folder();
  EXPECT_TRUE(
      write_file_durably(folder + "/rows.jsonl", "{\"prompt\":\"a\",\"completion\":\"b\"}\n"));
  const std::string run =
      cat("train --algorithm sft --model ", data("models/stories260k/hf"), " --data ", folder,
          "/rows.jsonl --quiet --output ", folder, "/out --set train.batch_size=1 ");
  EXPECT_EQ(run_program(run + "--steps 1 --set lora.rank=2").code, 0);
  const ProgramOutput without = run_program(run + "--steps 2");
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err,
              AllOf(HasSubstr("lora.rank: 2 in the run, now 0"), HasSubstr("write lora.rank=2")));
}

TEST(ConfigMistakes, AToolsOwnNameIsAnsweredBeforeASimilarOneOfOurs) {
  EXPECT_THAT(refusal({"train.lr=1", "data.path=D", "reward=boxed"}),
              HasSubstr("write train.learning_rate"));
  EXPECT_THAT(refusal({"reward.remote_url=U", "data.path=D", "reward=boxed"}),
              HasSubstr("OpenRLHF: write reward"));
}

TEST(ConfigMistakes, AFileInPlaceOfASectionIsItsPath) {
  const std::string text = refusal({"reward=boxed"}, "data: rows.jsonl\n");
  EXPECT_THAT(text, AllOf(HasSubstr("the configuration has a problem:"),
                          HasSubstr("data is a section; a map is expected"),
                          HasSubstr("write data: {path: ...}")));
}

TEST(ConfigMistakes, AFileThatIsNoMapIsTheOnlyProblem) {
  EXPECT_THAT(refusal({}, "- a\n- b\n"),
              AllOf(HasSubstr("the configuration has a problem:"),
                    HasSubstr("a map of keys is expected, found a list")));
}

TEST(ConfigMistakes, MissingPathsOfAFileElsewhereAreRelativeToTheCurrentDirectory) {
  const std::string folder = scratch_folder(), file = folder + "/run.yaml";
  ASSERT_TRUE(write_file_durably(file, "algorithm: sft\nmodel: M\noutput: O\ndata: {path: D}\n"));
  const auto elsewhere = recipes::resolve({.algorithm = "", .file = file, .sets = {}});
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().code, Errc::not_found);
  EXPECT_THAT(elsewhere.error().what,
              HasSubstr(cat("paths are relative to the current directory, ",
                            std::filesystem::current_path().string(), ", not to ", file)));
  const auto without = recipes::resolve(
      {.algorithm = "sft", .file = "", .sets = {"model=M", "output=O", "data.path=D"}});
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().what, Not(HasSubstr("paths are relative")));
}

TEST(ConfigMistakes, TwoContradictionsOfOneKeyAreTwoProblemsUnlessItsValueIsWrong) {
  const config::RunConfig config;
  const config::Origins origins;
  recipes::Findings findings{
      .problems = {}, .missing = 0, .warnings = {}, .reported = {}, .unused = {}};
  recipes::Validation validation(config, origins, findings);
  validation.problem("train.steps: contradicts one setting");
  validation.problem("train.steps: contradicts another");
  validation.problem("train.steps: contradicts another");
  validation.wrong_value("train.eps", "train.eps: must be above 0");
  validation.problem("train.eps: contradicts one setting");
  EXPECT_THAT(findings.problems,
              ElementsAre("train.steps: contradicts one setting",
                          "train.steps: contradicts another", "train.eps: must be above 0"));
}

}  // namespace
}  // namespace troupe::launch::config_mistakes_test
