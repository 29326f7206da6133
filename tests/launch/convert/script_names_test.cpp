// The program under the names of MindSpeed-LLM's scripts, with published command lines; sizes and
// paths are changed.
#include "launch/commands/script_names.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Runs build/.../megatron/NAME with the arguments; its output and errors.
ProgramOutput run_script(const std::string& name, const std::string& arguments) {
  return run_as(TROUPE_SCRIPTS "/" + name, arguments);
}

/// Copies the five-layer model of tests/data, whose folder stays as it is.
std::string copied_model(const std::string& root) {
  std::filesystem::copy(data("models/stories260k/hf"), root + "/hf");
  return root + "/hf";
}

constexpr const char* convert_flags =
    "--use-mcore-models --model-type GPT --load-model-type hf --save-model-type mg "
    "--target-tensor-parallel-size 2 --target-pipeline-parallel-size 2 --model-type-hf llama2 "
    "--params-dtype fp32 --num-layer-list 2,3";

TEST(ScriptNames, PutTheCommandInFront) {
  const auto words = [](std::vector<const char*> argv) {
    return commands::command_words(static_cast<int>(argv.size()), argv.data());
  };
  EXPECT_THAT(words({"troupe", "info", "x"}), ElementsAre("info", "x"));
  EXPECT_THAT(words({"/a/preprocess_data", "--workers", "4"}),
              ElementsAre("preprocess", "--workers", "4"));
  EXPECT_THAT(words({"convert_ckpt", "--help"}), ElementsAre("convert", "--help"));
  EXPECT_THAT(words({"b/convert_ckpt_v2"}), ElementsAre("convert", "--use-mcore-models"));
  EXPECT_THAT(words({"pretrain_gpt.py", "--bf16"}), ElementsAre("pretrain_gpt", "--bf16"));
  EXPECT_THAT(words({"inference", "--task", "chat"}), ElementsAre("inference", "--task", "chat"));
  EXPECT_THAT(words({"convert_ckpt/troupe"}), ElementsAre());
  EXPECT_THAT(words({}), ElementsAre());
}

TEST(ScriptNames, ConversionAndBackKeepsEveryLogProbability) {
  const std::string root = scratch_folder(), hf = copied_model(root), mg = root + "/mg";
  const ProgramOutput there =
      run_script("convert_ckpt", cat(convert_flags, " --load-dir ", hf, " --save-dir ", mg,
                                     " --tokenizer-model ", hf, "/tokenizer.json"));
  ASSERT_EQ(there.code, 0) << there.err;
  EXPECT_TRUE(std::filesystem::exists(mg + "/iter_0000001/mp_rank_01_001/model_optim_rng.pt"));
  const ProgramOutput back =
      run_script("convert_ckpt", cat("--use-mcore-models --model-type GPT --load-model-type mg "
                                     "--save-model-type hf --target-tensor-parallel-size 1 "
                                     "--target-pipeline-parallel-size 1 --load-dir ",
                                     mg, " --save-dir ", hf));
  ASSERT_EQ(back.code, 0) << back.err;
  EXPECT_TRUE(content(hf + "/mg2hf/model.safetensors") == content(hf + "/model.safetensors"));
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy(cat(hf, "/", file), cat(hf, "/mg2hf/", file),
                          std::filesystem::copy_options::skip_existing);
  const std::string text = "{\"text\": \"Once upon a time there was a little girl.\"}\n";
  const ProgramOutput before = run_program("logprobs --model " + hf, text);
  const ProgramOutput after = run_program(cat("logprobs --model ", hf, "/mg2hf"), text);
  ASSERT_EQ(before.code, 0) << before.err;
  EXPECT_THAT(before.out, HasSubstr("nll"));
  EXPECT_EQ(after.out, before.out);
}

TEST(ScriptNames, TheSecondConverterWritesTheNamesOfMegatronCore) {
  const std::string root = scratch_folder(), hf = copied_model(root);
  const std::string flags =
      cat(" --load-model-type hf --save-model-type mg --target-tensor-parallel-size 1 "
          "--target-pipeline-parallel-size 2 --load-dir ",
          hf, " --save-dir ");
  const ProgramOutput second = run_script("convert_ckpt_v2", cat(flags, root, "/second"));
  ASSERT_EQ(second.code, 0) << second.err;
  ASSERT_EQ(run_program(cat("convert --use-mcore-models ", flags, root, "/first")).code, 0);
  const std::string file = "/iter_0000001/mp_rank_00_001/model_optim_rng.pt";
  EXPECT_TRUE(content(root + "/second" + file) == content(root + "/first" + file));
}

TEST(ScriptNames, PreprocessesSeveralKeysIntoFilesOfTheirOwn) {
  const std::string root = scratch_folder();
  std::string rows;
  for (int i = 0; i < 20; ++i)
    rows += cat("{\"instruction\": \"Add ", i, " and 1.\", \"output\": \"", i + 1, "\"}\n");
  value_or_throw(write_file_durably(root + "/rows.jsonl", rows));
  const std::string flags =
      cat(" --input ", root, "/rows.jsonl --tokenizer-name-or-path ", data("models/stories260k/hf"),
          " --tokenizer-type PretrainedFromHF --json-keys instruction output "
          "--workers 4 --log-interval 1000 --output-prefix ");
  const ProgramOutput said = run_script("preprocess_data", cat(flags, root, "/script"));
  ASSERT_EQ(said.code, 0) << said.err;
  ASSERT_EQ(run_program(cat("preprocess ", flags, root, "/command")).code, 0);
  for (const char* end : {"_instruction_document.bin", "_instruction_document.idx",
                          "_output_document.bin", "_output_document.idx"})
    EXPECT_TRUE(content(root + "/script" + end) == content(root + "/command" + end)) << end;
  EXPECT_NE(content(root + "/script_instruction_document.bin"),
            content(root + "/script_output_document.bin"));
}

TEST(ScriptNames, RefuseAnUnknownFlag) {
  const ProgramOutput said =
      run_script("convert_ckpt", "--expert-parts 2 --load-dir a --save-dir b");
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.err, HasSubstr("--expert-parts"));
}

TEST(ScriptNames, TakeFlagsThatChangeNothingAndRefuseOthersByName) {
  const std::string root = scratch_folder(),
                    missing = cat(" --load-dir ", root, "/none --save-dir ", root, "/out");
  const std::string there = " --input none.jsonl --tokenizer-name-or-path " + root +
                            "/none --output-prefix " + root + "/out";
  constexpr int not_found = 4, usage = 2;
  EXPECT_EQ(run_script("convert_ckpt",
                       "--w-pack True --moe-grouped-gemm --target-expert-parallel-size 1" + missing)
                .code,
            not_found);
  EXPECT_EQ(
      run_script("preprocess_data", "--tokenizer-not-use-fast --overwrite-cache" + there).code,
      not_found);
  value_or_throw(write_file_durably(
      root + "/run.yaml",
      cat("input: none.jsonl\noutput_prefix: ", root, "/out\n", "tokenizer_name_or_path: ", root,
          "/none\n", "tokenizer_not_use_fast: true\n")));
  EXPECT_EQ(run_script("preprocess_data", root + "/run.yaml").code, not_found);
  const ProgramOutput experts =
      run_script("convert_ckpt", "--target-expert-parallel-size 2" + missing);
  EXPECT_EQ(experts.code, usage);
  EXPECT_THAT(experts.err, HasSubstr("convert: --target-expert-parallel-size 2: expected 1"));
  EXPECT_THAT(run_script("convert_ckpt", "--qlora-nf4" + missing).err, HasSubstr("QLoRA (NF4)"));
  EXPECT_THAT(run_script("preprocess_data", "--pack" + there).err, HasSubstr("--pack: rows"));
  EXPECT_THAT(run_script("preprocess_data", "--train-iters 2" + there).err,
              HasSubstr("unknown option --train-iters"));
}

TEST(ScriptNames, AFolderOfTheConfigurationLeavesTheOtherForTheResult) {
  const std::string root = scratch_folder(), hf = copied_model(root);
  ASSERT_EQ(run_script("convert_ckpt",
                       cat(convert_flags, " --load-dir ", hf, " --save-dir ", root, "/mg"))
                .code,
            0);
  const ProgramOutput back =
      run_script("convert_ckpt_v2", cat("--load-model-type mg --save-model-type hf --load-dir ",
                                        root, "/mg --save-dir ", root, "/back --hf-cfg-dir ", hf));
  ASSERT_EQ(back.code, 0) << back.err;
  EXPECT_TRUE(std::filesystem::exists(root + "/back/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(hf + "/mg2hf"));
}

}  // namespace
}  // namespace troupe::launch
