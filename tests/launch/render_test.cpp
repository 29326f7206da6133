// troupe render of the built program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/launch/program.h"

namespace troupe::launch::render_test {
namespace {

using testing::HasSubstr;

TEST(Render, AnswersLineForLine) {
  const std::string folder = scratch_folder();
  ASSERT_TRUE(
      write_file_durably(folder + "/t.jinja",
                         "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{% generation %}{{ "
                         "m.content }}{% endgeneration %}{% endfor %}"
                         "{% if add_generation_prompt %}<assistant>{% endif %}{{ extra }}"));
  const ProgramOutput said = run_program(
      "render --template " + folder + "/t.jinja",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"h\\u00e9\"}],\"add_generation_prompt\":true,"
      "\"bos_token\":\"<s>\"}\n"
      "{\"messages\":3}\n{\"messages\":[],\"kwargs\":{\"extra\":\"x\"},\"bos_token\":null}\n");
  EXPECT_EQ(said.code, 0) << said.err;
  const auto lines = json_lines(said.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].dump(), "{\"text\":\"<s><user>hé<assistant>\",\"assistant_spans\":[[9,11]]}");
  EXPECT_TRUE(lines[1].find("error"));
  EXPECT_EQ(lines[2].find("text")->string(), "x");
}

TEST(Render, AFolderBringsItsOwnTokensEvenWithoutATokenizer) {
  const std::string folder = scratch_folder();
  ASSERT_TRUE(write_file_durably(folder + "/tokenizer_config.json",
                                 "{\"chat_template\": \"{{ bos_token }}|{{ eos_token }}\", "
                                 "\"bos_token\": {\"content\": \"<b>\"}, \"eos_token\": \"<e>\"}"));
  const ProgramOutput said = run_program(
      "render --model " + folder, "{\"messages\":[]}\n{\"messages\":[],\"eos_token\":\"!\"}\n");
  EXPECT_EQ(said.code, 0) << said.err;
  const auto lines = json_lines(said.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].find("text")->string(), "<b>|<e>");
  EXPECT_EQ(lines[1].find("text")->string(), "<b>|!");
}

TEST(Render, AnErrorOfTheTemplateIsThatLinesAnswer) {
  const ProgramOutput said =
      run_program("render --template " + data("chat_templates/gemma-2.jinja"),
                  "{\"messages\":[{\"role\":\"system\",\"content\":\"x\"}],\"bos_token\":\"\"}\n"
                  "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"bos_token\":\"\"}\n");
  const auto lines = json_lines(said.out);
  ASSERT_EQ(lines.size(), 2u) << said.err;
  EXPECT_THAT(lines[0].find("error")->string(), HasSubstr("System role not supported"));
  EXPECT_EQ(lines[1].find("text")->string(), "<start_of_turn>user\nx<end_of_turn>\n");
}

TEST(Render, APromptTypeNeedsNoFolderAndTakesTheTokensOfOne) {
  const std::string line =
      "{\"messages\":[{\"role\":\"user\",\"content\":\"U\"},{\"role\":\"assistant\",\"content\":"
      "\"A\"}]}\n";
  const ProgramOutput alone = run_program("render --prompt-type chatml", line);
  ASSERT_EQ(json_lines(alone.out).size(), 1u) << alone.err;
  EXPECT_EQ(json_lines(alone.out)[0].dump(),
            "{\"text\":\"<|im_start|>user\\nU<|im_end|>\\n<|im_start|>assistant\\nA<|im_end|>\","
            "\"assistant_spans\":[[51,62]]}");
  const std::string folder = scratch_folder();
  ASSERT_TRUE(write_file_durably(folder + "/tokenizer_config.json",
                                 "{\"bos_token\": \"<b>\", \"eos_token\": \"<e>\"}"));
  const ProgramOutput with_tokens =
      run_program("render --prompt-type mistral --model " + folder, line);
  ASSERT_EQ(json_lines(with_tokens.out).size(), 1u) << with_tokens.err;
  EXPECT_EQ(json_lines(with_tokens.out)[0].find("text")->string(), "<b>[INST] U [/INST]A<e>");
  const ProgramOutput unknown = run_program("render --prompt-type nosuch", line);
  EXPECT_EQ(unknown.code, 4);
  EXPECT_THAT(unknown.err, HasSubstr("no prompt type \"nosuch\""));
}

/// What `troupe render` makes of a message with the template of a folder.
std::string rendered_by(const std::string& folder) {
  const ProgramOutput said =
      run_program("render --model " + folder, R"({"messages":[{"role":"user","content":"U"}]})"
                                              "\n");
  const auto lines = json_lines(said.out);
  if (lines.size() != 1 || !lines[0].find("text")) return said.err + said.out;
  return lines[0].find("text")->string();
}

TEST(Render, CheckpointsAndMergedModelsHaveTheTemplateThatTheyWereTrainedWith) {
  const std::string folder = scratch_folder(), model = data("models/tinystories-656k");
  ASSERT_TRUE(write_file_durably(
      folder + "/rows.jsonl",
      R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","content":"A"}]})"
      "\n"));
  const auto train = [&](const std::string& name, const std::string& more) {
    const ProgramOutput said =
        run_program(cat("train --algorithm sft --steps 1 --model ", model, " --data ", folder,
                        "/rows.jsonl --output ", folder, "/", name, more));
    EXPECT_EQ(said.code, 0) << said.err;
  };
  EXPECT_THAT(run_program(cat("train --algorithm sft --steps 1 --model ", model, " --data ", folder,
                              "/rows.jsonl --output ", folder, "/none"))
                  .err,
              HasSubstr("set chat_template to a template file or to the name of a prompt type"));
  train("whole", " --set chat_template=chatml");
  train("lora", " --set chat_template=chatml --set lora.rank=2");
  ASSERT_EQ(run_program(cat("merge --model ", model, " --adapter ", folder,
                            "/lora/latest --output ", folder, "/merged"))
                .code,
            0);
  for (const char* name : {"whole/latest", "lora/latest", "merged"})
    EXPECT_EQ(rendered_by(cat(folder, "/", name)),
              "<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n")
        << name;
}

}  // namespace
}  // namespace troupe::launch::render_test
