// Rows with members that other tools read (tests/data/cases), through the program.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
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
  const ProgramOutput said =
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
  const ProgramOutput said =
      run_program(cat("train --algorithm sft --model ", data("models/stories260k/hf"), " --data ",
                      case_file(file), " --quiet --set output=", folder,
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

const std::string model = data("models/stories260k/hf");

/// A copy of the model with the tokenizer_config.json of a case.
std::string with_config(const std::string& name) {
  namespace fs = std::filesystem;
  const std::string folder = scratch_folder() + "_model";
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& file : fs::directory_iterator(model))
    fs::copy_file(file.path(), fs::path(folder) / file.path().filename());
  fs::copy_file(case_file(name + "/tokenizer_config.json"), folder + "/tokenizer_config.json",
                fs::copy_options::overwrite_existing);
  return folder;
}

/// What `explain` shows of the rows: the first example, or the error.
std::string shown(const std::string& file, const std::string& arguments,
                  const std::string& folder = model) {
  const ProgramOutput said =
      run_program(cat("explain --algorithm sft --model ", folder, " --data ", case_file(file),
                      " --output ", scratch_folder(), "/x ", arguments));
  const auto at = said.out.find("First example");
  if (at == std::string::npos) return said.out + said.err;
  std::string text = said.out.substr(at);
  const std::string line_end = "\\n\n  ";  // a line of the text is one of the output, indented
  for (auto end = text.find(line_end); end != std::string::npos; end = text.find(line_end, end))
    text.replace(end, line_end.size(), "\\n");
  return text;
}

TEST(RowCases, EveryRoleIsInAChatMlExample) {
  for (const char* type : {"chatml", "qwen"}) {
    const std::string set = cat("--set chat_template=", type);
    EXPECT_THAT(shown("prompt-type-roles/developer.jsonl", set),
                HasSubstr("<|im_start|>developer\\nBe short.<|im_end|>\\n<|im_start|>user\\na"))
        << type;
    EXPECT_THAT(
        shown("prompt-type-roles/system.jsonl", set),
        AllOf(
            HasSubstr("<|im_start|>system\\nFirst rule<|im_end|>\\n<|im_start|>user\\na<|im_end|>"),
            HasSubstr("<|im_end|>]]\\n<|im_start|>system\\nSecond rule<|im_end|>\\n"
                      "<|im_start|>user\\nc")))
        << type;
    EXPECT_THAT(shown("prompt-type-roles/critic.jsonl", set),
                HasSubstr("a<|im_end|>\\n<|im_start|>critic\\nToo long.<|im_end|>\\n"
                          "<|im_start|>assistant\\n"))
        << type;
  }
}

TEST(RowCases, ARoleWithoutAFormIsRefusedByName) {
  for (const char* type : {"default", "empty", "mistral", "gemma"}) {
    const std::string set = cat("--set chat_template=", type);
    EXPECT_THAT(shown("prompt-type-roles/critic.jsonl", set), HasSubstr("the role critic")) << type;
    EXPECT_THAT(shown("prompt-type-roles/system.jsonl", set),
                HasSubstr("the role system that is not the first"))
        << type;
  }
}

TEST(RowCases, TheToolTemplateRendersRowsWithTools) {
  const std::string folder = with_config("named-chat-templates");
  EXPECT_THAT(shown("named-chat-templates/rows.jsonl", "", folder),
              HasSubstr("<s> Functions: [{\"type\": \"function\", \"function\": {\"name\": "
                        "\"weather\""));
  const ProgramOutput said =
      run_program("render --model " + folder,
                  value_or_throw(read_file(case_file("named-chat-templates/rows.jsonl"))));
  EXPECT_THAT(said.out, HasSubstr("{\"text\":\"<s>Functions: ["));
  const ProgramOutput plain = run_program(
      "render --model " + folder, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n");
  EXPECT_THAT(plain.out, HasSubstr("{\"text\":\"<s>user: a\\n\"}"));
}

TEST(RowCases, ATemplateGetsEverySpecialToken) {
  const std::string folder = with_config("template-special-tokens");
  const std::string rows =
      value_or_throw(read_file(case_file("template-special-tokens/rows.jsonl")));
  EXPECT_EQ(run_program("render --model " + folder, rows).out,
            "{\"text\":\"<s>|</s>|<unk>|<unk>|a\"}\n");
}

TEST(RowCases, ReasoningThatTheGenerationPromptOpensIsOpenedOnce) {
  const std::string form = data("chat_templates/deepseek-r1-distill-qwen.jinja");
  EXPECT_THAT(shown("reasoning-template-prefix/rows.jsonl", "--set chat_template=" + form),
              AllOf(HasSubstr("<think>\\n[[T1\\n</think>\\n\\nONE</s>]]"),
                    Not(HasSubstr("<think>\\n[[<think>"))));
}

TEST(RowCases, ParquetWithJsonColumnsIsReadAsItsRows) {
  const std::string folder = with_config("arrow-json-columns");
  for (const std::string name : {"schema", "messages"}) {
    const std::string rows = shown(cat("arrow-json-columns/", name, ".jsonl"), "", folder);
    EXPECT_THAT(rows, HasSubstr("\"minimum\": 0"));
    const std::string parquet = shown(cat("arrow-json-columns/", name, ".parquet"), "", folder);
    const bool without_arrow = parquet.find("cmake/fetch_arrow.sh") != std::string::npos;
    if (!without_arrow) {
      EXPECT_EQ(parquet, rows) << name;
    }
  }
}

}  // namespace
}  // namespace troupe::launch
