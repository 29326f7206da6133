// troupe generate: precedence of generation_config.json, options and lines; beam search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/models/head_config.h"
#include "tests/launch/program.h"

namespace troupe::launch::generate_test {
namespace {

using testing::HasSubstr;

const std::string line = "{\"ids\":[1,403,407]}\n";

/// stories260k with a different generation_config.json.
std::string model_with(const std::string& config) {
  const std::string folder = scratch_folder();
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
    std::filesystem::copy_file(data("models/stories260k/hf/") + name, folder + "/" + name);
  EXPECT_TRUE(write_file_durably(folder + "/generation_config.json", config));
  return folder;
}

Json first(const std::string& arguments, const std::string& input = line) {
  const ProgramOutput said = run_program("generate --threads 1 " + arguments, input);
  EXPECT_EQ(said.code, 0) << said.err;
  const auto lines = json_lines(said.out);
  return lines.empty() ? Json() : lines[0];
}

std::size_t length(const Json& answer) {
  return answer.find("ids")->array().size();
}

TEST(GenerationDefaults, ComeFromTheModelsFileAndYieldToOptionsAndLines) {
  const std::string model =
      "--model " +
      model_with(R"({"max_new_tokens": 5, "do_sample": true, "temperature": 30, "top_k": 0})");
  const Json drawn = first(model + " --seed 3");
  EXPECT_EQ(length(drawn), 5U);
  const Json greedy = first(model + " --greedy");
  EXPECT_NE(drawn.find("ids")->dump(), greedy.find("ids")->dump());
  EXPECT_EQ(greedy.find("ids")->dump(),
            first(model + " --generation-config none --max-new-tokens 5").find("ids")->dump());
  EXPECT_EQ(length(first(model + " --max-new-tokens 3")), 3U);
  EXPECT_EQ(
      length(first(model + " --max-new-tokens 3", "{\"ids\":[1,403],\"max_new_tokens\":2}\n")), 2U);
  EXPECT_EQ(first(model, "{\"ids\":[1,403,407],\"do_sample\":false}\n").find("ids")->dump(),
            greedy.find("ids")->dump());
}

TEST(GenerationDefaults, MaxLengthCountsThePrompt) {
  const std::string model = "--model " + model_with(R"({"max_length": 8})");
  EXPECT_EQ(length(first(model)), 5U);
  EXPECT_THAT(first(model, "{\"ids\":[1,2,3,4,5,6,7,8]}\n").find("error")->string(),
              HasSubstr("max_length"));
}

TEST(GenerationDefaults, WhatWouldChangeTheOutputIsRefusedByName) {
  const std::string model = model_with(R"({"guidance_scale": 1.5})");
  const ProgramOutput said = run_program("generate --model " + model, line);
  EXPECT_EQ(said.code, 6);
  EXPECT_THAT(said.err, HasSubstr("guidance_scale is 1.5; troupe does not support it"));
  EXPECT_THAT(said.err, HasSubstr("--generation-config none"));
  EXPECT_EQ(length(first("--generation-config none --max-new-tokens 2 --model " + model)), 2U);
  EXPECT_TRUE(
      write_file_durably(model + "/mine.json", R"({"max_new_tokens": 4, "chat_format": "x"})"));
  const ProgramOutput other = run_program(
      "generate --threads 1 --generation-config " + model + "/mine.json --model " + model, line);
  EXPECT_EQ(length(json_lines(other.out).at(0)), 4U);
  EXPECT_THAT(other.err, HasSubstr("chat_format is not used"));
}

TEST(GenerationDefaults, ValuesThatMeanNothingAreRefusedWithTheirFile) {
  const ProgramOutput said =
      run_program("generate --model " + model_with(R"({"top_p": 7, "do_sample": true})"), line);
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.err, HasSubstr("generation_config.json: top_p is 7"));
  const ProgramOutput eos =
      run_program("generate --model " + model_with(R"({"eos_token_id": 512})"), line);
  EXPECT_EQ(eos.code, 3);
  EXPECT_THAT(eos.err, HasSubstr("512"));
}

/// stories260k with a score head of zeros instead of its language head.
std::string reward_model() {
  using engine::checkpoint::SafetensorsFile;
  using engine::checkpoint::SafetensorsWriter;
  const std::string folder = model_with("{}");
  std::filesystem::copy_file(data("models/stories260k/hf/tokenizer_config.json"),
                             folder + "/tokenizer_config.json");
  Json config = value_or_throw(read_json(folder + "/config.json"));
  engine::models::write_head(config, 1, false);
  EXPECT_TRUE(write_file_durably(folder + "/config.json", config.dump()));
  const std::string path = folder + "/model.safetensors";
  std::filesystem::remove(path);
  const auto base =
      value_or_throw(SafetensorsFile::open(data("models/stories260k/hf/model.safetensors")));
  std::vector<SafetensorsWriter::Plan> plans{
      {"score.weight", engine::checkpoint::StoredType::f32, {1, 64}}};
  for (const auto& tensor : base.tensors())
    plans.push_back({tensor.name, tensor.type, tensor.shape});
  auto writer = value_or_throw(SafetensorsWriter::create(path, plans));
  for (const auto& tensor : writer.tensors()) {
    std::vector<float> values(static_cast<std::size_t>(tensor.count()));
    if (base.find(tensor.name)) {
      EXPECT_TRUE(base.read_f32(tensor.name, values));
    }
    EXPECT_TRUE(writer.write(tensor.name, values));
  }
  EXPECT_TRUE(writer.finish());
  return folder;
}

TEST(RewardModel, IsRefusedBeforeAnythingIsPrinted) {
  const std::string model = reward_model();
  for (const char* command : {"generate --prompt hi", "generate", "chat", "logprobs"}) {
    const ProgramOutput said = run_program(cat(command, " --model ", model), line);
    EXPECT_EQ(said.code, 2) << command;
    EXPECT_EQ(said.out, "") << command;
    EXPECT_THAT(said.err, HasSubstr("expected a language model, found a reward model or critic"));
  }
}

TEST(Prompt, IsPrintedOnlyAfterEveryCheck) {
  const std::string model = " --threads 1 --model " + data("models/stories260k/hf");
  std::string words = "once";
  for (int i = 0; i < 600; ++i) words += " upon";
  const ProgramOutput longer = run_program(cat("generate --prompt '", words, "'", model));
  EXPECT_EQ(longer.code, 3);
  EXPECT_EQ(longer.out, "");
  EXPECT_THAT(longer.err, HasSubstr("512 tokens"));
  const ProgramOutput cold = run_program("generate --prompt Once --temperature -1" + model);
  EXPECT_EQ(cold.code, 2);
  EXPECT_EQ(cold.out, "");
  EXPECT_THAT(cold.err, HasSubstr("temperature"));
}

TEST(Messages, AreRenderedWithTheModelsTemplateOrAnother) {
  const std::string model = "--max-new-tokens 5 --model " + data("models/stories260k/hf");
  const std::string messages = R"("messages":[{"role":"user","content":"Once upon a time"}])";
  const ProgramOutput rendered = run_program("render --model " + data("models/stories260k/hf"),
                                             "{" + messages + ",\"add_generation_prompt\":true}\n");
  const std::string text = json_lines(rendered.out).at(0).find("text")->string();
  const ProgramOutput ids = run_program("tokenize --model " + data("models/stories260k/hf"),
                                        Json(Json::Object{{"text", text}}).dump() + "\n");
  const Json expected = first(model, ids.out);
  EXPECT_EQ(first(model, "{" + messages + "}\n").dump(), expected.dump());
  EXPECT_NE(first(model, "{" + messages + ",\"add_generation_prompt\":false}\n").dump(),
            expected.dump());
  const std::string folder = scratch_folder() + "/templates";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(
      write_file_durably(folder + "/t.jinja", "{{ tools[0].name }}{{ messages[0].content }}"));
  const Json with_tools = first(cat(model, " --template ", folder, "/t.jinja"),
                                "{" + messages + ",\"tools\":[{\"name\":\"Lily \"}]}\n");
  EXPECT_NE(with_tools.dump(), expected.dump());
  EXPECT_NE(first(cat(model, " --template chatml"), "{" + messages + "}\n").dump(),
            expected.dump());
  EXPECT_THAT(first(model, "{" + messages + ",\"ids\":[1]}\n").find("error")->string(),
              HasSubstr("one of prompt, ids and messages"));
}

TEST(LineMembers, MisspelledSettingsAreErrorsAndOthersAreNamedOnce) {
  const std::string model = "--max-new-tokens 2 --model " + data("models/stories260k/hf");
  EXPECT_THAT(first(model, "{\"ids\":[1],\"temprature\":9}\n").find("error")->string(),
              HasSubstr("unknown member \"temprature\"; did you mean temperature?"));
  const ProgramOutput said = run_program("generate --threads 1 " + model,
                                         "{\"ids\":[1],\"id\":7,\"step\":1,\"answer\":\"a\"}\n"
                                         "{\"ids\":[1],\"answer\":\"b\"}\n");
  for (const Json& answer : json_lines(said.out)) EXPECT_TRUE(answer.find("ids")) << answer.dump();
  const std::string warning = "the member \"answer\" of the input lines is not used";
  const auto at = said.err.find(warning);
  ASSERT_NE(at, std::string::npos) << said.err;
  EXPECT_EQ(said.err.find(warning, at + 1), std::string::npos) << said.err;
  EXPECT_THAT(said.err, HasSubstr("\"id\""));
  EXPECT_EQ(length(first(model, "{\"ids\":[1],\"max_tokens\":1}\n")), 1U);
}

TEST(ClosedPipe, EndsACommandSilently) {
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += line;
  const std::string folder = scratch_folder();
  ASSERT_TRUE(write_file_durably(folder + "/lines", lines));
  const std::string script =
      cat("set -o pipefail; '" TROUPE_PROGRAM "' generate --threads 1 --max-new-tokens 1 --model '",
          data("models/stories260k/hf"), "' <'", folder, "/lines' 2>'", folder,
          "/err' | head -n 1 >/dev/null");
  const int status = std::system(cat("bash -c \"", script, "\"").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 141);  // 128 + SIGPIPE, which bash reports
  EXPECT_EQ(value_or_throw(read_file(folder + "/err")), "");
}

TEST(WeightsIn8Bits, GiveOtherLogProbabilitiesAndNoOtherAnswer) {
  const std::string model = "--max-new-tokens 12 --model " + data("models/stories260k/hf");
  const Json full = first(model), int8 = first(model + " --weights int8"),
             bf16 = first(model + " --weights int8 --dtype bf16");
  EXPECT_EQ(int8.find("ids")->dump(), full.find("ids")->dump())
      << "greedily, where the model is sure";
  EXPECT_NE(int8.find("logprobs")->dump(), full.find("logprobs")->dump());
  EXPECT_NE(bf16.find("logprobs")->dump(), int8.find("logprobs")->dump())
      << "attention is in bf16 too";
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_NEAR(int8.find("logprobs")->array()[i].number(),
                full.find("logprobs")->array()[i].number(), 0.2);
  const ProgramOutput wrong = run_program("generate --weights int4 " + model, line);
  EXPECT_EQ(wrong.code, 2) << wrong.err;
  EXPECT_THAT(wrong.err, HasSubstr("int8"));
}

TEST(Beams, AreSearchedFromOptionsAndLines) {
  const std::string model = "--max-new-tokens 12 --model " + data("models/stories260k/hf");
  const Json best = first(model + " --num-beams 4 --length-penalty 0.5");
  EXPECT_EQ(length(best), 12U);
  EXPECT_TRUE(best.find("score"));
  EXPECT_EQ(best.find("logprobs")->array().size(), 12U);
  const Json same = first(model, "{\"ids\":[1,403,407],\"num_beams\":4,\"length_penalty\":0.5}\n");
  EXPECT_EQ(same.dump(), best.dump());
  const Json several = first(model + " --num-beams 4 --early-stopping never --n 3");
  ASSERT_EQ(several.find("samples")->array().size(), 3U);
  EXPECT_GE(several.find("samples")->array()[0].find("score")->number(),
            several.find("samples")->array()[1].find("score")->number());
}

TEST(Beams, ArePrintedForAUserOnceTheyAreFound) {
  const ProgramOutput said =
      run_program("generate --threads 1 --num-beams 3 --n 2 --max-new-tokens 5 --model " +
                  data("models/stories260k/hf") + " --prompt 'Once upon'");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("Once upon a time"));
  EXPECT_EQ(std::count(said.out.begin(), said.out.end(), '\n'), 2);
}

TEST(Beams, AreDrawnWhereSettingsSample) {
  const std::string model =
      "--max-new-tokens 12 --num-beams 3 --model " + data("models/stories260k/hf");
  const Json searched = first(model), drawn = first(model + " --temperature 2 --seed 3");
  EXPECT_EQ(drawn.dump(), first(model + " --temperature 2 --seed 3").dump());
  EXPECT_NE(drawn.find("ids")->dump(), searched.find("ids")->dump());
  EXPECT_NE(drawn.find("ids")->dump(),
            first(model + " --temperature 2 --seed 4").find("ids")->dump());
}

TEST(Tasks, AreTheSettingsThatTheyStandFor) {
  const std::string model =
      "--seed 7 --max-new-tokens 10 --model " + model_with(R"({"temperature": 1.5, "top_k": 0})");
  const auto same = [&](const std::string& task, const std::string& settings) {
    EXPECT_EQ(first(model + " --task " + task).dump(),
              first(model, "{\"ids\":[1,403,407]," + settings + "}\n").dump())
        << task;
  };
  same("greedy", R"("do_sample":false,"num_beams":1)");
  same("do_sample", R"("do_sample":true)");
  same("beam_search", R"("do_sample":false,"num_beams":2)");
  same("beam_search --num-beams 3", R"("do_sample":false,"num_beams":3)");
  same("beam_search_with_sampling", R"("do_sample":true,"num_beams":2)");
  const ProgramOutput refused =
      run_program("generate --task do_sample --num-beams 3 " + model, line);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--task do_sample: expected --num-beams 1, found 3"));
}

TEST(Tasks, ChatIsADialogue) {
  const std::string options =
      "--threads 1 --template empty --max-new-tokens 4 --model " + data("models/stories260k/hf");
  const ProgramOutput said =
      run_program("generate --task chat --seed 1 " + options, "Hello\nAgain\n");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out,
            run_program("chat --temperature 1 --seed 1 " + options, "Hello\nAgain\n").out);
  EXPECT_EQ(run_program("generate --task chat --prompt Hello " + options).code, 2);
}

TEST(Beams, WhatTheyAreNotCombinedWithIsSaid) {
  const std::string model = "--num-beams 2 --model " + data("models/stories260k/hf");
  EXPECT_THAT(first(model + " --top-logprobs 2").find("error")->string(),
              HasSubstr("no top_logprobs"));
  EXPECT_THAT(first(model + " --n 3").find("error")->string(),
              HasSubstr("num_return_sequences is 3; allowed: 1 to num_beams"));
}

TEST(Words, AreBannedForcedAndBiasedByLines) {
  const std::string model = "--max-new-tokens 3 --model " + data("models/stories260k/hf");
  const std::string first_token = first(model).find("ids")->array()[0].dump();
  EXPECT_NE(first(model, "{\"ids\":[1,403,407],\"suppress_tokens\":[" + first_token + "]}\n")
                .find("ids")
                ->array()[0]
                .dump(),
            first_token);
  EXPECT_NE(first(model, "{\"ids\":[1,403,407],\"logit_bias\":{\"" + first_token + "\":-100}}\n")
                .find("ids")
                ->array()[0]
                .dump(),
            first_token);
  EXPECT_EQ(first(model, "{\"ids\":[1,403,407],\"forced_eos_token_id\":7}\n")
                .find("ids")
                ->array()[2]
                .dump(),
            "7");
  EXPECT_THAT(first(model, "{\"ids\":[1],\"suppress_tokens\":[512]}\n").find("error")->string(),
              HasSubstr("512 is not a token of this model"));
  EXPECT_THAT(first(model, "{\"ids\":[1],\"max_new_tokens\":0}\n").find("error")->string(),
              HasSubstr("max_new_tokens is 0"));
}

}  // namespace
}  // namespace troupe::launch::generate_test
