// compat: trl, through the program: the losses that TRL's trainers recorded (made by
// tests/trainers/compare.py --record) for conversations of several templates and plain text.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

std::string stories() {
  return data("models/stories260k/hf");
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<double> losses_of(const std::string& arguments, const std::string& output) {
  const ProgramOutput said = run_program(cat("train --quiet --output ", output, " ", arguments));
  EXPECT_EQ(said.code, 0) << said.err;
  std::vector<double> out;
  const auto text = read_file(output + "/metrics.jsonl");
  for (const Json& step : text ? json_lines(*text) : std::vector<Json>{})
    out.push_back(step.find("loss")->number());
  return out;
}

class CompatTrl : public testing::TestWithParam<std::string> {
 protected:
  const Json golden_ = value_or_throw(read_json(data("golden/trl/compat.json")));

  std::string arguments(const Json& run, const std::string& folder) const {
    std::string rows;
    for (const Json& row : golden_.find("rows")->find(run.find("rows")->string())->array())
      rows += row.dump() + "\n";
    write(folder + "/rows.jsonl", rows);
    std::string out = cat("--model ", stories(), " --data ", folder, "/rows.jsonl --algorithm ",
                          run.find("algorithm")->string());
    const std::string& form =
        golden_.find("templates")->find(run.find("template")->string())->string();
    if (!form.empty()) {
      write(folder + "/template.jinja", form);
      out += cat(" --set chat_template=", folder, "/template.jinja");
    }
    for (const Json& setting : run.find("settings")->array()) out += " --set " + setting.string();
    return out;
  }
};

TEST_P(CompatTrl, EveryStepHasTheLossOfItsTrainer) {
  std::size_t compared = 0;
  for (const Json& run : golden_.find("runs")->array()) {
    if (run.find("algorithm")->string() != GetParam()) continue;
    const std::string& name = run.find("name")->string();
    const std::string folder = scratch_folder();
    const auto found = losses_of(arguments(run, folder), folder + "/run");
    const auto& expected = run.find("losses")->array();
    ASSERT_EQ(found.size(), expected.size()) << name;
    for (std::size_t step = 0; step < found.size(); ++step)
      EXPECT_NEAR(found[step], expected[step].number(), 1e-4) << name << ", step " << step + 1;
    ++compared;
  }
  EXPECT_GE(compared, 3u);
}

INSTANTIATE_TEST_SUITE_P(Methods, CompatTrl,
                         testing::Values("sft", "dpo", "kto", "orpo", "cpo", "simpo"),
                         [](const auto& chosen) { return chosen.param; });

std::string ids_of(const std::string& folder, const std::string& options) {
  return run_program(cat("tokenize --special --model ", folder, " ", options),
                     R"({"text": "  two blanks </s> x"})")
      .out;
}

TEST(TokenizerIds, ACheckpointHasTheTokenizerThatItWasTrainedWith) {
  const std::string folder = scratch_folder(), run = folder + "/run";
  write(folder + "/rows.jsonl", R"({"prompt": "  a  ", "completion": "  b </s> c"})");
  const auto losses = [&](const char* ids, const std::string& output) {
    return losses_of(cat("--algorithm sft --model ", stories(), " --data ", folder,
                         "/rows.jsonl --set train.steps=1 --set train.batch_size=1 "
                         "--set tokenizer_ids=",
                         ids),
                     output);
  };
  EXPECT_NE(losses("transformers5", run), losses("file", folder + "/other"));
  EXPECT_NE(ids_of(stories(), ""), ids_of(stories(), "--transformers5"));
  EXPECT_EQ(ids_of(run + "/latest", ""), ids_of(stories(), "--transformers5"));
  EXPECT_EQ(ids_of(folder + "/other/latest", ""), ids_of(stories(), ""));
  const ProgramOutput changed = run_program(
      cat("train --quiet --output ", run, " --algorithm sft --model ", stories(), " --data ",
          folder, "/rows.jsonl --set train.steps=2 --set train.batch_size=1"));
  EXPECT_NE(changed.code, 0);
  EXPECT_NE(changed.err.find("tokenizer_ids"), std::string::npos) << changed.err;
}

TEST(TokenizerIds, AnEvaluationReadsItsPromptsWithThem) {
  const std::string folder = scratch_folder(), saved = folder + "/saved";
  write(folder + "/rows.jsonl", R"({"prompt": "  a  ", "completion": "  b </s> c"})");
  losses_of(cat("--algorithm sft --model ", stories(), " --data ", folder,
                "/rows.jsonl --set train.steps=1 --set train.batch_size=1 "
                "--set tokenizer_ids=transformers5"),
            folder + "/run");
  std::filesystem::copy(stories(), saved);
  std::filesystem::copy(folder + "/run/latest/tokenizer.json", saved + "/tokenizer.json",
                        std::filesystem::copy_options::overwrite_existing);
  write(folder + "/prompts.jsonl", R"({"prompt": "  One </s> day", "answer": "x"})");
  int runs = 0;
  const auto completion = [&](const std::string& model, const char* ids) {
    const std::string lines = cat(folder, "/items", ++runs, ".jsonl");
    const ProgramOutput said = run_program(
        cat("eval --model ", model, " --data ", folder, "/prompts.jsonl --output ", lines,
            " --max-new-tokens 16 --reward exact_match --set tokenizer_ids=", ids));
    EXPECT_EQ(said.code, 0) << said.err;
    const auto text = read_file(lines);
    const auto all = text ? json_lines(*text) : std::vector<Json>{};
    for (const Json& line : all)
      if (const Json* found = line.find("completions")) return found->array().at(0).string();
    ADD_FAILURE() << "no completion in " << lines;
    return std::string();
  };
  const std::string expected = completion(saved, "file");
  EXPECT_EQ(completion(stories(), "transformers5"), expected);
  EXPECT_NE(completion(stories(), "file"), expected);
}

TEST(TokenizerIds, InfoNamesTheIdsThatAreUsed) {
  const ProgramOutput said = run_program("info " + stories());
  EXPECT_NE(said.out.find("ids: those of tokenizer.json"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("tokenizer_ids: transformers5"), std::string::npos) << said.out;
  const ProgramOutput other = run_program("info " + data("models/digit-completion"));
  EXPECT_EQ(other.out.find("tokenizer_ids"), std::string::npos) << other.out;
}

}  // namespace
}  // namespace troupe::launch
