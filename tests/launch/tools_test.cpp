// The JSON-lines commands of the built program: one answer per line, errors as answers, exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/launch/program.h"

namespace troupe::launch::tools_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string stories = "models/stories260k/hf";

bool is_error(const Json& line) {
  return line.object().size() == 1 && line.find("error") && line.find("error")->is_string();
}

TEST(Program, TellsItsVersionAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const ProgramOutput said = run_program("--version");
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, StartsWith("troupe 0."));
  EXPECT_LT(std::chrono::steady_clock::now() - start,
            std::chrono::seconds(20));  // 50 ms on an idle machine
}

TEST(Program, UsageErrorsLeaveWithTwo) {
  EXPECT_EQ(run_program("").code, 2);
  EXPECT_EQ(run_program("fly").code, 2);
  EXPECT_EQ(run_program("tokenize").code, 2);
  EXPECT_EQ(run_program("tokenize --model x --speshul").code, 2);
  EXPECT_EQ(run_program("render").code, 2);
  const ProgramOutput said = run_program("train --algorithm sft --set model=x --set train.step=1");
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.err, HasSubstr("did you mean train.steps?"));
  EXPECT_THAT(said.err, HasSubstr("output is not set"));
  EXPECT_EQ(run_program("--help").code, 0);
  EXPECT_EQ(run_program("train --help").code, 0);
}

TEST(Program, ACommandThatDoesNotExistIsNamed) {
  const ProgramOutput said = run_program("tokenise --model x");
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.err, HasSubstr("unknown command \"tokenise\"; available commands: train, "));
  EXPECT_THAT(said.err, HasSubstr("did you mean tokenize?"));
  EXPECT_EQ(run_program("").code, 2);
}

TEST(Program, ExitCodesTellTheKindOfFailure) {
  EXPECT_EQ(run_program("logprobs --model /nowhere").code, 4);
  EXPECT_EQ(run_program("info /nowhere").code, 4);
  const std::string folder = scratch_folder();
  ASSERT_TRUE(write_file_durably(
      folder + "/config.json", "{\"architectures\": [\"NoSuchModel\"], \"model_type\": \"none\"}"));
  EXPECT_EQ(run_program("logprobs --model " + folder).code, 6);
}

TEST(Tokenize, AnswersLineForLine) {
  const ProgramOutput said = run_program(
      "tokenize --model " + data(stories),
      "{\"text\":\"Once upon a time\"}\nnonsense\n\n{\"text\":7}\n[1]\n{\"text\":\"\"}");
  EXPECT_EQ(said.code, 0) << said.err;
  const auto lines = json_lines(said.out);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0].dump(), "{\"ids\":[403,407,261,378]}");
  for (const int bad : {1, 2, 3, 4})
    EXPECT_TRUE(is_error(lines[static_cast<std::size_t>(bad)]))
        << lines[static_cast<std::size_t>(bad)].dump();
  EXPECT_EQ(lines[5].dump(), "{\"ids\":[]}");
}

TEST(Tokenize, SpecialTokensComeOnlyWhenRequested) {
  const ProgramOutput said =
      run_program("tokenize --special --model " + data(stories) + "/tokenizer.json",
                  "{\"text\":\"Once upon a time\"}\n");
  EXPECT_EQ(json_lines(said.out)[0].dump(), "{\"ids\":[1,403,407,261,378]}") << said.err;
}

TEST(Tokenize, DecodesWithoutSpecialTokens) {
  const ProgramOutput said =
      run_program("tokenize --decode --model " + data(stories),
                  "{\"ids\":[1,403,407,261,378,2]}\n{\"ids\":[-1]}\n{\"ids\":[1.5]}\n{}\n");
  const auto lines = json_lines(said.out);
  ASSERT_EQ(lines.size(), 4u) << said.err;
  EXPECT_EQ(lines[0].dump(), "{\"text\":\"Once upon a time\"}");
  for (const std::size_t bad : {1u, 2u, 3u}) EXPECT_TRUE(is_error(lines[bad]));
}

TEST(Logprobs, NeedOneValueATokenAndNoTokenizerForIds) {
  const std::string folder = scratch_folder();
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(data(stories) + "/" + name, folder + "/" + name);
  const ProgramOutput said =
      run_program("logprobs --threads 1 --model " + folder,
                  "{\"ids\":[1,403,407,261]}\n{\"text\":\"Once\"}\n{\"ids\":[1]}\n{"
                  "\"ids\":[]}\n{\"ids\":[512]}\n");
  EXPECT_EQ(said.code, 0) << said.err;
  const auto lines = json_lines(said.out);
  ASSERT_EQ(lines.size(), 5u);
  const auto& values = lines[0].find("logprobs")->array();
  ASSERT_EQ(values.size(), 4u);
  EXPECT_TRUE(values[0].is_null());
  double sum = 0;
  for (std::size_t t = 1; t < 4; ++t) {
    EXPECT_LT(values[t].number(), 0);
    sum -= values[t].number();
  }
  EXPECT_DOUBLE_EQ(lines[0].find("nll")->number(), sum);
  EXPECT_THAT(lines[1].find("error")->string(), HasSubstr("tokenizer.json"));
  EXPECT_EQ(lines[2].dump(), "{\"logprobs\":[null],\"nll\":0.0}");
  EXPECT_TRUE(is_error(lines[3]));
  EXPECT_THAT(lines[4].find("error")->string(), HasSubstr("from 0 to 511"));
}

TEST(Generate, ContinuesIdsAndPrompts) {
  const ProgramOutput said =
      run_program("generate --threads 1 --max-new-tokens 6 --model " + data(stories),
                  "{\"ids\":[1]}\n{\"prompt\":\"Once upon a time, there was a "
                  "little\"}\n{}\n{\"ids\":[1],\"max_new_tokens\":2}\n"
                  "{\"ids\":[1],\"stop\":\"upon\"}\n{\"ids\":[1],\"top_p\":7}\n");
  EXPECT_EQ(said.code, 0) << said.err;
  const auto lines = json_lines(said.out);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0].find("ids")->dump(), "[403,407,261,378,432,383]");
  EXPECT_EQ(lines[0].find("text")->string(), "Once upon a time, there");
  EXPECT_EQ(lines[0].find("logprobs")->array().size(), 6u);
  EXPECT_EQ(lines[0].find("finish_reason")->string(), "length");
  EXPECT_THAT(lines[1].find("text")->string(), StartsWith(" "));
  EXPECT_TRUE(is_error(lines[2]));
  EXPECT_EQ(lines[3].find("ids")->array().size(), 2u);
  EXPECT_EQ(lines[4].find("finish_reason")->string(), "stop");
  EXPECT_EQ(lines[4].find("text")->string(), "Once ");
  EXPECT_TRUE(is_error(lines[5]));
}

TEST(Generate, SeedsDecideTheDraws) {
  const std::string drawn =
      "generate --threads 1 --temperature 1 --max-new-tokens 12 --n 2 --model " + data(stories) +
      " --seed ";
  const std::string line = "{\"ids\":[1,403]}\n";
  const std::string seven = run_program(drawn + "7", line).out;
  EXPECT_EQ(seven, run_program(drawn + "7", line).out);
  EXPECT_NE(seven, run_program(drawn + "8", line).out);
  const Json answer =
      json_lines(seven)[0];  // its parts are read below, so it must not be a temporary
  const auto& samples = answer.find("samples")->array();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_NE(samples[0], samples[1]);
}

TEST(Generate, StreamsForAUser) {
  const ProgramOutput said = run_program("generate --threads 1 --max-new-tokens 5 --model " +
                                         data(stories) + " --prompt 'Once upon'");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, "Once upon a time, there was\n");
}

TEST(Explain, ShowsValuesOriginsFormulaAndMemory) {
  const std::string folder = scratch_folder();
  ASSERT_TRUE(write_file_durably(folder + "/rows.jsonl",
                                 "{\"prompt\":\"a\",\"chosen\":\"b\",\"rejected\":\"c\"}\n"));
  ASSERT_TRUE(write_file_durably(folder + "/run.yaml", "algorithm: dpo\ndpo:\n  beta: 0.25\n"));
  const ProgramOutput said =
      run_program(cat("explain --config ", folder, "/run.yaml --set model=", data(stories),
                      " --set data.path=", folder, "/rows.jsonl --set output=", folder, "/out"));
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("run.yaml:3"));
  EXPECT_THAT(said.out, HasSubstr("- log sigmoid(0.25 (c - r))"));
  EXPECT_THAT(said.out, HasSubstr("260,032 parameters"));
  EXPECT_THAT(said.out, HasSubstr("1015.8 KiB"));
  EXPECT_THAT(said.out, HasSubstr("needed"));
  EXPECT_THAT(said.out, Not(HasSubstr("not known")));
  EXPECT_FALSE(std::filesystem::exists(folder + "/out"));
}

TEST(Explain, CountsRewardModelsAndTheReplicasOfAGrid) {
  const std::string folder = scratch_folder();
  ASSERT_TRUE(write_file_durably(folder + "/rows.jsonl", "{\"prompt\":\"a\",\"answer\":\"b\"}\n"));
  const ProgramOutput said = run_program(
      cat("explain --algorithm grpo --set model=", data(stories), " --set data.path=", folder,
          "/rows.jsonl --set output=", folder,
          "/out --set parallel.dp=2 --set 'reward=[{rule: model, path: \"", data(stories),
          "\"}, {rule: model, label: other, path: \"", data(stories), "\"}]'"));
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("weights (f32), 1015.8 KiB on each of 2 ranks  2.0 MiB"));
  EXPECT_THAT(said.out, testing::ContainsRegex("reward models +2.0 MiB"));
}

/// `troupe explain` of SFT on one row with further settings.
ProgramOutput explain_sft(const std::string& more) {
  const std::string folder = scratch_folder();
  EXPECT_TRUE(
      write_file_durably(folder + "/rows.jsonl", "{\"prompt\":\"a\",\"completion\":\"b\"}\n"));
  return run_program(cat("explain --algorithm sft --set model=", data(stories), " --set data.path=",
                         folder, "/rows.jsonl --set output=", folder, "/out", more));
}

TEST(Explain, CountsTheOptimizerStateOnceWhereReplicasDivideIt) {
  const auto moments_of = [](const std::string& more) {
    const ProgramOutput said = explain_sft(" --set parallel.dp=2 " + more);
    EXPECT_EQ(said.code, 0) << said.err;
    const auto at = said.out.find("AdamW's two moments");
    return at == std::string::npos ? said.out : said.out.substr(at, said.out.find('\n', at) - at);
  };
  EXPECT_EQ(moments_of(""), "AdamW's two moments, 2.0 MiB on each of 2 ranks 4.0 MiB");
  EXPECT_EQ(moments_of("--set parallel.zero=1"),
            "AdamW's two moments, 1015.8 KiB on each of 2 ranks 2.0 MiB");
  EXPECT_EQ(moments_of("--set train.moments=bf16"),
            "AdamW's two moments (bf16), 1015.8 KiB on each of 2 ranks 2.0 MiB");
}

TEST(Explain, CountsTheBytesOfEachType) {
  const auto said = [](const std::string& more) { return explain_sft(more).out; };
  const std::string weights = " --set train.weights=bf16",
                    gradients = " --set train.gradients=bf16",
                    moments = " --set train.moments=bf16";
  const auto each = [](const std::string& text) {
    return testing::ContainsRegex("bytes per trained parameter +" + text);
  };
  EXPECT_THAT(said(""), each("16 \\(weight 4, gradient 4, moments 8\\)"));
  EXPECT_THAT(said(weights), each("14 \\(weight 2, gradient 4, moments 8\\)"));
  EXPECT_THAT(said(" --set train.dtype=bf16 --set train.weights=split"),
              each("16 \\(weight 4, gradient 4, moments 8\\)"));
  EXPECT_THAT(said(weights + gradients), each("12 \\(weight 2, gradient 2, moments 8\\)"));
  EXPECT_THAT(said(weights + gradients + moments), each("8 \\(weight 2, gradient 2, moments 4\\)"));
  EXPECT_THAT(said(gradients), each("14 \\(weight 4, gradient 2, moments 8\\)"));
  EXPECT_THAT(said(moments), each("12 \\(weight 4, gradient 4, moments 4\\)"));
  const std::string all = said(gradients + moments);
  EXPECT_THAT(all, each("10 \\(weight 4, gradient 2, moments 4\\)"));
  // 260,032 parameters; the table of 512 x 64 is the largest, and has a second gradient in f32.
  EXPECT_THAT(all, testing::ContainsRegex("tied embedding \\(bf16\\) +635.9 KiB"));
  EXPECT_THAT(all, testing::ContainsRegex("f32 copies of operands +128.0 KiB"));
  EXPECT_THAT(said(" --set train.ema_decay=0.9"), each("20 \\(.*, average 4\\)"));
  EXPECT_THAT(said(weights + gradients + " --set lora.rank=4"), each("16 "));
}

TEST(Explain, CountsTheSecondGradientOfATiedEmbedding) {
  const auto said = [](const std::string& more) { return explain_sft(more).out; };
  // 260,032 parameters and 512 x 64 of the embedding.
  EXPECT_THAT(said(""), testing::ContainsRegex("gradients, two of the tied embedding +1\\.1 MiB"));
  EXPECT_THAT(said(" --set lora.rank=4"), Not(HasSubstr("tied embedding")));
}

TEST(Info, StatesWhatAFolderIsAndWhetherItIsUsable) {
  EXPECT_EQ(run_program("info " + data(stories)).code, 0);
  EXPECT_THAT(run_program("info " + data("tokenizers/gpt2/tokenizer.json")).out,
              HasSubstr("usable: yes"));
  const std::string folder = scratch_folder();
  EXPECT_EQ(run_program("info " + folder).code, 6);
  std::filesystem::copy_file(data(stories) + "/config.json", folder + "/config.json");
  const ProgramOutput no_weights = run_program("info " + folder);
  EXPECT_EQ(no_weights.code, 4);
  EXPECT_THAT(no_weights.out, HasSubstr("usable: no"));
  ASSERT_TRUE(write_file_durably(folder + "/rows.jsonl",
                                 "{\"prompt\":\"a\",\"completion\":\"b\"}\nnot json\n"));
  const ProgramOutput rows = run_program("info " + folder + "/rows.jsonl");
  EXPECT_EQ(rows.code, 3);
  EXPECT_THAT(rows.out, HasSubstr("for sft: prompt_completion"));
  EXPECT_THAT(rows.out, HasSubstr("rows.jsonl:2"));
}

TEST(Adapter, AsAModelIsFoundBesideItsBaseOrRefused) {
  namespace fs = std::filesystem;
  const std::string folder = scratch_folder(), adapter = folder + "/adapter";
  fs::copy(data("golden/models/llama"), folder + "/base");
  fs::copy(data("golden/peft/llama-q-v"), adapter);
  const auto rename_base = [&](const std::string& base) {
    Json config = value_or_throw(read_json(adapter + "/adapter_config.json"));
    config.set("base_model_name_or_path", base);
    EXPECT_TRUE(write_file_durably(adapter + "/adapter_config.json", config.dump()));
  };
  rename_base("../base");
  const std::string ids = "{\"ids\":[1,2,3,4]}\n";
  const ProgramOutput alone = run_program("logprobs --model " + adapter, ids);
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(alone.out,
            run_program(cat("logprobs --model ", folder, "/base --adapter ", adapter), ids).out);
  EXPECT_NE(alone.out, run_program("logprobs --model " + folder + "/base", ids).out);
  rename_base("org/base");
  const std::string use =
      cat("is a LoRA adapter of org/base, not a model: use the base model with "
          "the adapter (--model org/base --adapter ",
          adapter, ")");
  for (const std::string& arguments :
       {cat("generate --model ", adapter), cat("score --data x --model ", adapter),
        cat("train --algorithm sft --set data.path=x --set output=", folder,
            "/o --set model=", adapter)}) {
    const ProgramOutput said = run_program(arguments, ids);
    EXPECT_THAT(said.code, testing::AnyOf(2, 4)) << arguments;
    EXPECT_THAT(said.err, HasSubstr(use));
  }
}

TEST(Model, OnHuggingFaceIsNotDownloadedAndTheErrorSaysHow) {
  for (const char* command :
       {"logprobs --model meta-llama/Llama-3.2-1B",
        "train --algorithm sft --set data.path=/dev/null --set output=/nowhere --set "
        "model=meta-llama/Llama-3.2-1B"}) {
    const ProgramOutput said = run_program(command);
    EXPECT_THAT(said.err, HasSubstr("hf download meta-llama/Llama-3.2-1B --local-dir"));
    EXPECT_THAT(said.err, HasSubstr("docs/models.md"));
  }
  const ProgramOutput local = run_program("logprobs --model models/Llama-3.2-1B");
  EXPECT_THAT(local.err, Not(HasSubstr("hf download")));
  EXPECT_THAT(local.err, HasSubstr("docs/models.md"));
}

TEST(Info, KnowsAnAdapterAndAsksForItsBase) {
  const ProgramOutput said = run_program("info " + data("golden/peft/llama-q-v"));
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("LoRA of rank"));
  EXPECT_THAT(said.out, HasSubstr("which does not exist; give it with --model BASE --adapter"));
}

}  // namespace
}  // namespace troupe::launch::tools_test
