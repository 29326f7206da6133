// Inputs of tests/data/cases that are trained on or scored, through the program.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/launch/program.h"

namespace troupe::launch::training_cases {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string case_file(const std::string& name) {
  return data("cases/" + name);
}

std::string stories() {
  return data("models/stories260k/hf");
}

/// A folder with the files of all `folders`; those of later ones replace those of earlier ones.
std::string combined(const std::vector<std::string>& folders) {
  const std::string folder = scratch_folder() + "_model";
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const std::string& from : folders)
    for (const auto& file : fs::directory_iterator(from))
      fs::copy_file(file.path(), fs::path(folder) / file.path().filename(),
                    fs::copy_options::overwrite_existing);
  return folder;
}

/// The metrics of a run; what stderr says fails the test if there are none.
std::vector<Json> metrics_of(const std::string& arguments) {
  const std::string folder = scratch_folder();
  const ProgramOutput said = run_program(
      cat("train --quiet --set output=", folder, "/run --set data.shuffle=false ", arguments));
  EXPECT_EQ(said.code, 0) << said.err;
  const auto text = read_file(folder + "/run/metrics.jsonl");
  return text ? json_lines(*text) : std::vector<Json>{};
}

double number(const Json& metrics, const char* name) {
  const Json* found = metrics.find(name);
  return found ? std::round(found->number() * 1e4) / 1e4 : NAN;
}

TEST(TrainingCases, EpochsEndAsThoseOfTheTool) {
  const auto tokens = [](const std::string& compat) {
    std::vector<double> out;
    for (const Json& step :
         metrics_of(cat("--algorithm sft --model ", stories(), " --data ",
                        case_file("epoch-last-batch/rows.jsonl"),
                        " --set train.batch_size=4 --set train.epochs=2 ", compat)))
      out.push_back(number(step, "tokens"));
    return out;
  };
  EXPECT_THAT(tokens("--set compat=trl"), ElementsAre(42, 39, 19, 42, 39, 19));
  EXPECT_THAT(tokens("--set compat=verl"), ElementsAre(42, 39, 42, 39));
  EXPECT_EQ(tokens("").size(), 5u);
}

std::vector<double> first_loss(const std::string& settings) {
  const auto steps = metrics_of(cat("--algorithm dpo --model ", stories(), " --data ",
                                    case_file("adapter-continued-reference/pairs.jsonl"),
                                    " --set train.batch_size=2 --set train.steps=1 ", settings));
  if (steps.empty()) return {};
  return {number(steps[0], "loss"), number(steps[0], "rewards/margins")};
}

TEST(TrainingCases, TheReferenceOfAContinuedAdapterIsTheAdapterAsItWas) {
  const std::string adapter = case_file("adapter-continued-reference/adapter");
  const std::string continued = cat("--set lora.adapter=", adapter);
  EXPECT_THAT(first_loss(continued + " --set compat=trl"), ElementsAre(0.6931, 0));
  EXPECT_THAT(first_loss(continued + " --set lora.reference=initial"), ElementsAre(0.6931, 0));
  EXPECT_THAT(first_loss(cat(continued, " --set dpo.reference=", adapter)), ElementsAre(0.6931, 0));
  const auto against_base = first_loss(continued);
  ASSERT_EQ(against_base.size(), 2u);
  EXPECT_NEAR(against_base[0], 2.018, 1e-3);
  EXPECT_NEAR(against_base[1], -1.875, 1e-3);
}

TEST(TrainingCases, SamplesAcrossTheSwitchOfLongRopeHaveARatioOfOne) {
  const std::string model = combined({case_file("longrope-grpo-ratio/model")});
  for (const char* file : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"})
    fs::copy_file(data(cat("models/digit-completion/", file)), cat(model, "/", file));
  const auto steps =
      metrics_of(cat("--algorithm grpo --model ", model, " --data ",
                     case_file("longrope-grpo-ratio/prompts.jsonl"),
                     " --set train.batch_size=2 --set train.steps=1 --set train.threads=1 "
                     "--set grpo.group_size=4 --set rollout.max_new_tokens=60 --set train.seed=4 "
                     "--set 'reward=[{rule: length, max: 20, buffer: 18}]'"));
  ASSERT_EQ(steps.size(), 1u);
  for (const char* name : {"ratio/min", "ratio/mean", "ratio/max"})
    EXPECT_EQ(steps[0].find(name)->number(), 1) << name;
  EXPECT_EQ(steps[0].find("clip_ratio/region_mean")->number(), 0);
}

double nll_of(const std::string& arguments, const std::string& ids) {
  const ProgramOutput said =
      run_program("logprobs --model " + arguments, value_or_throw(read_file(ids)));
  EXPECT_EQ(said.code, 0) << said.err;
  const auto lines = json_lines(said.out);
  return lines.empty() || !lines[0].find("nll") ? NAN : lines[0].find("nll")->number();
}

TEST(TrainingCases, RopeScalingReplacesRopeParameters) {
  const std::string model = combined({stories(), case_file("rope-scaling-beside-rope-parameters")});
  EXPECT_NEAR(nll_of(model, case_file("rope-scaling-beside-rope-parameters/ids.jsonl")), 168.442,
              1e-3);
}

TEST(TrainingCases, AnAdapterMayHaveACopyOfTheTiedHead) {
  EXPECT_NEAR(nll_of(cat(stories(), " --adapter ", case_file("adapter-of-tied-head/adapter")),
                     case_file("adapter-of-tied-head/ids.jsonl")),
              58.832, 1e-3);
}

}  // namespace
}  // namespace troupe::launch::training_cases
