// Rows with members that other tools read (tests/data/cases), through the program.
#include <gmock/gmock.h>

#include <cmath>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string case_file(const std::string& name) {
  return data("cases/" + name);
}

/// The first example that `explain` shows.
std::string first_example(const std::string& arguments, const std::string& file) {
  const Said said =
      run_program(cat("explain --model ", data("models/stories260k/hf"), " --data ",
                      case_file(file), " --output ", scratch_folder(), "/x ", arguments));
  EXPECT_EQ(said.code, 0) << said.out << said.err;
  const auto at = said.out.find("First example");
  return at == std::string::npos ? "" : said.out.substr(at);
}

TEST(RowCases, AMessageOfWeightZeroIsNotTrainedOn) {
  for (const char* file : {"message-weight/weight.jsonl", "message-weight/train.jsonl"})
    EXPECT_THAT(first_example("--algorithm sft", file),
                AllOf(HasSubstr("[[ RIGHT"), HasSubstr("WRONG"), Not(HasSubstr("[[ WRONG"))))
        << file;
}

TEST(RowCases, ASystemColumnIsPartOfThePrompt) {
  for (const auto& [arguments, file] : std::vector<std::pair<const char*, const char*>>{
           {"--algorithm sft", "sft"},
           {"--algorithm dpo", "dpo"},
           {"--algorithm grpo --set reward=exact_match", "grpo"}})
    EXPECT_THAT(first_example(cat(arguments, " --set data.chat=always"),
                              cat("system-column/", file, ".jsonl")),
                HasSubstr("<s> system: Answer in French."))
        << file;
}

/// The loss of one step with a learning rate of 0; what stderr says, if there is none.
std::string loss_of(const std::string& file) {
  const std::string folder = scratch_folder();
  const Said said = run_program(cat("train --algorithm sft --model ", data("models/stories260k/hf"),
                                    " --data ", case_file(file), " --quiet --set output=", folder,
                                    "/run --set train.steps=1 --set train.batch_size=1 "
                                    "--set train.learning_rate=0"));
  if (said.code != 0) return said.err;
  const auto lines = json_lines(value_or_throw(read_file(folder + "/run/metrics.jsonl")));
  return cat(std::round(lines.front().find("loss")->number() * 1e4) / 1e4);
}

TEST(RowCases, MasksOfTokenRowsAreThoseOfTheLoss) {
  for (const char* name : {"labels", "completion_mask", "assistant_masks", "loss_mask"})
    EXPECT_EQ(loss_of(cat("token-rows-masks/", name, ".jsonl")), "8.2636") << name;
}

TEST(RowCases, PackedTokenRowsAreRefusedByName) {
  for (const char* name : {"position_ids", "seq_lengths"})
    EXPECT_THAT(
        loss_of(cat("token-rows-packed/", name, ".jsonl")),
        AllOf(HasSubstr(cat(name, ".jsonl:1: \"", name, "\" does not describe one sequence")),
              HasSubstr("data.columns.")));
}

}  // namespace
}  // namespace troupe::launch
