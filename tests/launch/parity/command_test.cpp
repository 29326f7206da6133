// `troupe parity` from the command line, and its page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/models/families.h"
#include "tests/launch/program.h"

namespace troupe::launch::parity {
namespace {

using testing::HasSubstr;

std::string stories() {
  return cat("parity --model ", data("models/stories260k/hf"));
}

TEST(ParityCommand, KeepsItsPromisesForATrainedModel) {
  const ProgramOutput said =
      run_program(stories() + " --dtype f32,bf16 --samples 3 --max-new-tokens 8 --locate --json");
  ASSERT_EQ(said.code, 0) << said.out << said.err;
  const Json out = json_lines(said.out).at(0);
  EXPECT_TRUE(out.find("kept")->boolean());
  const auto& reports = out.find("reports")->array();
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[1].find("dtype")->string(), "bf16");
  for (const Json& report : reports) {
    EXPECT_EQ(report.find("texts")->integer(), 3);
    EXPECT_EQ(report.find("pairs")->array().size(), 10U);
    for (const Json& pair : report.find("pairs")->array())
      EXPECT_GT(pair.find("values")->integer(), 0) << pair.dump();
  }
}

TEST(ParityCommand, ContinuesThePromptsOfAFile) {
  const std::string file = scratch_folder() + "/prompts.jsonl";
  std::ofstream(file) << "{\"text\": \"Once upon a time\"}\n{\"ids\": [1, 5, 6]}\n";
  const ProgramOutput said = run_program(
      cat(stories(), " --data ", file, " --max-new-tokens 4 --paths decode --targets 0 --json"));
  ASSERT_EQ(said.code, 0) << said.out << said.err;
  const Json report = json_lines(said.out).at(0).find("reports")->array().at(0);
  EXPECT_EQ(report.find("texts")->integer(), 2);
  EXPECT_EQ(report.find("pairs")->array().at(0).find("values")->integer(), 8);
  std::ofstream(file) << "{\"ids\": [99999]}\n";
  const ProgramOutput refused = run_program(cat(stories(), " --data ", file));
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("prompts.jsonl:1: "));
}

TEST(ParityCommand, RefusesWhatItCannotCompare) {
  const auto refused = [](const std::string& options, const char* why) {
    const ProgramOutput said = run_program(stories() + options);
    EXPECT_EQ(said.code, 2) << options;
    EXPECT_THAT(said.err, HasSubstr(why)) << options;
  };
  refused(" --paths decod", "decod");
  refused(" --set train.steps=2", "expected KEY=VALUE with a key of rollout.* or parallel.*");
  refused(" --set parallel.tpp=2", "unknown key \"parallel.tpp\"; the nearest one is parallel.tp");
  refused(" --set parallel.tp=many", "parallel.tp");
  refused(" --set parallel.dp=2", "replicas");
  refused(" --set rollout.lookup=2", "rollout.lookup has no effect here");
  refused(" --targets some", "expected all or a number");
  EXPECT_EQ(run_program("parity").code, 2);
  EXPECT_EQ(run_program("parity --table " + scratch_folder()).code, 4);
}

TEST(ParityCommand, ThePageIsThatOfTheProgramAndHasEveryFamily) {
  const ProgramOutput said = run_program("parity --table " + data("parity"));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, value_or_throw(read_file(TROUPE_DOCS "/parity.md")))
      << "run tests/docs/update_generated.sh";
  EXPECT_THAT(said.out, testing::Not(HasSubstr("differs")));
  for (const engine::models::Family& family : engine::models::families())
    EXPECT_THAT(said.out, HasSubstr(cat("`", family.stem, family.language, "`")));
}

}  // namespace
}  // namespace troupe::launch::parity
