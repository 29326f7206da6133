// troupe import of shell scripts and command lines, of what the files name, and of foreign files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "launch/tools/migration/input.h"
#include "tests/launch/imported.h"

namespace troupe::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

ProgramOutput import_of_script(const std::string& script) {
  const std::string folder = scratch_folder();
  value_or_throw(write_file_durably(folder + "/run.sh", script));
  return run_program(cat("import ", folder, "/run.sh --output ", folder, "/run.yaml"));
}

/// The words that bash passed, recorded by tests/launch/import_scripts.py, beside those that import
/// reads; of a word that needs the output of a command, what is before it.
TEST(ImportOfAScript, ReadsTheWordsThatBashPassesInVerlsExamples) {
  std::size_t scripts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(example("verl"))) {
    if (entry.path().extension() != ".sh") continue;
    const std::string path = entry.path().string();
    std::istringstream recorded(value_or_throw(read_file(path + ".words")));
    std::vector<std::string> notes, expected, arguments;
    for (std::string word; std::getline(recorded, word);) expected.push_back(word);
    if (path.find("gemma") != std::string::npos) arguments = {"8", "/save"};
    const auto command = value_or_throw(
        tools::migration::command_of_script(path, {arguments, {{"DEVICE", "gpu"}}}, notes));
    ASSERT_EQ(command.words.size(), expected.size()) << path;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const tools::migration::shell::Value& word = command.words[i].value;
      if (word.unknown.empty())
        EXPECT_EQ(word.text, expected[i]) << path;
      else
        EXPECT_TRUE(expected[i].starts_with(word.text.substr(0, word.unknown_at))) << path;
    }
    ++scripts;
  }
  EXPECT_EQ(scripts, 10u);
}

struct MethodOfScript {
  const char* name;
  const char* options;
  const char* algorithm;
};

TEST(ImportOfAScript, FindsTheMethodOfVerlsExamples) {
  for (const auto& [name, options, algorithm] :
       {MethodOfScript{"grpo_trainer__run_qwen3_8b_fsdp.sh", "", "grpo"},
        MethodOfScript{"ppo_trainer__run_qwen3_8b_fsdp.sh", "", "ppo"},
        MethodOfScript{"cispo_trainer__run_qwen3_8b_fsdp.sh", "", "grpo"},
        MethodOfScript{"rloo_trainer__run_qwen3_8b_fsdp.sh", "", "rloo"},
        MethodOfScript{"sft__gsm8k__run_gemma_2b_fsdp.sh", "8 out", "sft"}}) {
    const Imported got = import_of(cat(example("verl/"), name, ' ', options, " --env DEVICE=gpu"));
    EXPECT_EQ(got.said.code, 0) << got.said.err;
    EXPECT_EQ(config_in(got.file).algorithm, algorithm);
  }
  const ProgramOutput unknown =
      run_program("import " + example("verl/grpo_trainer__run_qwen3_8b_fsdp.sh"));
  EXPECT_EQ(unknown.code, 3) << "the device is that of a program's output";
  EXPECT_EQ(unknown.out, "");
  EXPECT_THAT(unknown.err, HasSubstr("(line 19); give the variable that it comes from a value"));
}

TEST(ImportOfAScript, ReadsTheConfigurationOfItsConfigName) {
  const std::string folder = scratch_folder();
  value_or_throw(write_file_durably(
      folder + "/run.sh",
      "python3 -m verl.trainer.main_ppo --config-path=\"$(pwd)/settings\" --config-name=mine "
      "algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=7\n"));
  EXPECT_EQ(run_program(cat("import ", folder, "/run.sh")).code, 4);
  std::filesystem::create_directory(folder + "/settings");
  value_or_throw(write_file_durably(
      folder + "/settings/mine.yaml",
      "defaults: [ppo_trainer]\nactor_rollout_ref: {model: {path: M}, rollout: {n: 3, "
      "temperature: 0.5}}\ndata: {train_files: D}\n"));
  const ProgramOutput said = run_program(cat("import ", folder, "/run.sh"));
  EXPECT_EQ(said.code, 0) << said.err;
  const config::RunConfig config = value_or_throw(recipes::config_of(said.out, "stdout"));
  EXPECT_EQ(config.grpo.group, 7) << "words override the file";
  EXPECT_EQ(config.rollout.sampling.temperature, 0.5);
}

TEST(ImportOfAScript, NamesWhatIsUnknownAndConvertsTheRest) {
  const ProgramOutput said = import_of_script(
      "LR=$(cat lr)\ndeepspeed --module openrlhf.cli.train_dpo --pretrain M --dataset D "
      "--save_path O --learning_rate $LR --beta 0.3 --train_batch_size 4\n");
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.err, AllOf(HasSubstr("Converted:\n"), HasSubstr("dpo.beta: 0.3"),
                              HasSubstr("learning_rate (depends on the output of \"cat lr\" (line "
                                        "1))")));
  const ProgramOutput any = import_of_script(
      "A=$(cat lr)\ndeepspeed --module openrlhf.cli.train_dpo --pretrain M x $A\n");
  EXPECT_EQ(any.code, 3);
  EXPECT_THAT(any.err, HasSubstr("the word \"$(cat lr)\" may be any settings"));
  const ProgramOutput generation =
      import_of_script("python3 -m verl.trainer.main_generation model.path=M\n");
  EXPECT_EQ(generation.code, 6);
  EXPECT_THAT(generation.err, HasSubstr("troupe generate samples from a model"));
}

TEST(Import, FilesOfToolsThatAreNotSupportedAreRefusedByName) {
  const struct {
    const char* text;
    const char* name;
  } files[] = {
      {"base_model: M\ndatasets: [{path: D, type: alpaca}]\nsequence_len: 4096\n", "axolotl"},
      {"model: M\ntrain_dataset: data/a.yaml\ndist_config: {name: fsdp2}\n", "LLaMA-Factory v1"},
      {"tokenizer: {_component_: torchtune.models.llama3}\nmodel: {_component_: x}\n", "torchtune"},
      {"policy: {model_name: M}\ngrpo: {num_prompts_per_step: 8}\n", "NeMo-RL"}};
  for (const auto& [text, name] : files) {
    const std::string file = scratch_folder() + "/other.yaml";
    value_or_throw(write_file_durably(file, text));
    const ProgramOutput said = run_program("import " + file);
    EXPECT_EQ(said.code, 6) << text;
    EXPECT_THAT(said.err, HasSubstr(cat("this is a configuration of ", name, ", which is not")));
  }
  EXPECT_EQ(run_program("import -- axolotl train x.yaml").code, 6);
}

TEST(Import, TrainingThatIsNotSupportedIsNoOtherTraining) {
  const std::string file = scratch_folder() + "/oft.yaml";
  value_or_throw(write_file_durably(
      file, "stage: sft\nmodel_name_or_path: M\ndataset: D\nfinetuning_type: oft\n"));
  const ProgramOutput oft = run_program("import " + file);
  EXPECT_EQ(oft.code, 6);
  EXPECT_THAT(oft.err, HasSubstr("finetuning_type oft (line 4): such training is not supported"));
  const ProgramOutput experts = run_program(
      "import -- pretrain_gpt.py --num-layers 2 --num-experts 8 --tokenizer-name-or-path M "
      "--data-path D");
  EXPECT_EQ(experts.code, 6) << experts.out;
  EXPECT_THAT(experts.err, HasSubstr("mixtures of experts are not supported"));
  const std::string words = " --model_name_or_path M --dataset_name D --num_generations 4";
  const ProgramOutput sdpo = run_program("import -- python examples/scripts/sdpo.py" + words);
  EXPECT_EQ(sdpo.code, 6);
  EXPECT_THAT(sdpo.err, HasSubstr("the method of TRL's program sdpo is not supported"));
  const ProgramOutput rloo = run_program("import -- python examples/scripts/rloo_vlm.py" + words);
  EXPECT_EQ(rloo.code, 0) << rloo.err;
  EXPECT_THAT(rloo.out, HasSubstr("algorithm: rloo\n"));
}

TEST(Import, AnInlineTemplateIsWrittenBesideTheRunFile) {
  const std::string folder = scratch_folder(), file = folder + "/trl.yaml";
  value_or_throw(write_file_durably(
      file,
      "model_name_or_path: M\ndataset_name: D\noutput_dir: O\nmax_length: 64\n"
      "chat_template: \"{% for m in messages %}{{ m.content }}{% endfor %}\"\n"));
  const std::string run = cat("import ", file, " --tool trl --algorithm sft");
  const ProgramOutput said = run_program(cat(run, " --output ", folder, "/run.yaml"));
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(config_in(folder + "/run.yaml").chat_template, folder + "/run.chat_template.jinja");
  EXPECT_EQ(value_or_throw(read_file(folder + "/run.chat_template.jinja")),
            "{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_THAT(run_program(run).err, HasSubstr("give --output"));
}

TEST(Import, LlamaFactorysRegisterGivesFilesAndColumns) {
  const std::string folder = scratch_folder(), file = folder + "/examples/train/kto.yaml";
  std::filesystem::create_directories(folder + "/examples/train");
  std::filesystem::create_directory(folder + "/data");
  value_or_throw(write_file_durably(folder + "/data/dataset_info.json",
                                    R"({"mine": {"file_name": "mine.json", "formatting": "sharegpt",
          "columns": {"messages": "talk", "kto_tag": "good"},
          "tags": {"role_tag": "who", "content_tag": "what"}},
          "far": {"hf_hub_url": "org/set"}})"));
  value_or_throw(write_file_durably(
      file, "stage: kto\nmodel_name_or_path: M\noutput_dir: O\ndataset: mine\n"));
  const ProgramOutput said = run_program("import " + file);
  EXPECT_EQ(said.code, 0) << said.err;
  const config::RunConfig config = value_or_throw(recipes::config_of(said.out, "stdout"));
  EXPECT_EQ(config.data.paths, std::vector<std::string>{folder + "/data/mine.json"});
  EXPECT_EQ(config.data.columns.at("label"), "good");
  EXPECT_EQ(config.data.tags.at("role_tag"), "who");
  value_or_throw(
      write_file_durably(file, "stage: sft\nmodel_name_or_path: M\noutput_dir: O\ndataset: far\n"));
  EXPECT_THAT(run_program("import " + file).err, HasSubstr("far: download org/set"));
}

TEST(Import, LlamaFactorysInterleavedDataSetsAreSourcesOfAMix) {
  const std::string folder = scratch_folder(), file = folder + "/train.yaml";
  std::filesystem::create_directory(folder + "/data");
  value_or_throw(write_file_durably(folder + "/data/dataset_info.json",
                                    R"({"a": {"file_name": "a.json"}, "b": {"file_name": "b.json",
          "columns": {"prompt": "ask", "response": "say"}}})"));
  const auto said = [&](const std::string& more) {
    value_or_throw(write_file_durably(
        file, cat("stage: sft\nmodel_name_or_path: M\noutput_dir: O\ndataset: a,b\n", more)));
    return run_program("import " + file);
  };
  const ProgramOutput weighted =
      said("mix_strategy: interleave_under\ninterleave_probs: 0.7,0.3\n");
  EXPECT_EQ(weighted.code, 0) << weighted.err;
  const config::RunConfig config = value_or_throw(recipes::config_of(weighted.out, "stdout"));
  ASSERT_EQ(config.data.mix.size(), 2u);
  EXPECT_EQ(config.data.mix[0].weight, 0.7);
  EXPECT_EQ(config.data.mix[1].weight, 0.3);
  EXPECT_EQ(config.data.mix[1].columns.at("instruction"), "ask");
  EXPECT_THAT(weighted.err, HasSubstr("interleave_under ends with the first"));
  EXPECT_EQ(
      value_or_throw(recipes::config_of(said("mix_strategy: interleave_over\n").out, "stdout"))
          .data.mix[1]
          .weight,
      1);
  EXPECT_THAT(said("mix_strategy: interleave_over\ninterleave_probs: 0.5\n").err,
              HasSubstr("interleave_probs: expected a number above 0 for each of 2 data sets"));
  const ProgramOutput joined = said("mix_strategy: concat\ninterleave_probs: 0.7,0.3\n");
  EXPECT_TRUE(value_or_throw(recipes::config_of(joined.out, "stdout")).data.mix.empty());
  EXPECT_THAT(joined.err, HasSubstr("concat, which has no probabilities"));
}

TEST(Import, AMethodIsNeverGuessed) {
  const ProgramOutput other = run_program(
      "import -- python3 -m verl.trainer.main_ppo algorithm.adv_estimator=optimal_token_baseline "
      "actor_rollout_ref.model.path=M data.train_files=D");
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.out, "");
  EXPECT_THAT(other.err, HasSubstr("optimal_token_baseline has no equivalent"));
}

TEST(Import, DefaultsOfAToolThatTheMethodExcludesAreOff) {
  const ProgramOutput said = run_program(
      "import -- python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
      "actor_rollout_ref.model.path=M data.train_files=D "
      "actor_rollout_ref.actor.policy_loss.loss_mode=cispo "
      "actor_rollout_ref.rollout.n=4");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(value_or_throw(recipes::config_of(said.out, "stdout")).grpo.loss.surrogate.dual_clip,
            0);
}

constexpr const char* script_command = "\ndeepspeed --module openrlhf.cli.train_dpo --pretrain ";

// Each of these would need gigabytes or minutes.
TEST(ImportOfAScript, IsBoundedWhateverItsVariablesSay) {
  const std::string large = cat("A=", std::string(900'000, 'a'), "\n");
  const struct {
    std::string script;
    const char* error;
  } scripts[] = {
      {cat("A=aaaaaaaaaa\n", repeated("A=$A$A$A$A$A$A$A$A$A$A\n", 30), script_command, "$A"),
       "expected at most 1048576 bytes of a word of the script, found more"},
      {cat(large, "B=$A", script_command, "$B"),
       "expected at most 1048576 bytes of the values of the variables of the script, found more"},
      {cat(large, script_command, repeated("$A ", 1000)),
       "expected at most 4194304 bytes of the words of the script, found more"},
      {cat(script_command, repeated("${A:-", 100'000), "x", repeated("}", 100'000)),
       "expected at most 64 variables within defaults of others"},
      {cat(script_command, repeated("${A:-", 150'000)),
       "expected at most 64 variables within defaults of others"},
  };
  for (const auto& [script, error] : scripts) {
    const ProgramOutput said = import_of_script(script);
    EXPECT_EQ(said.code, 2) << script.substr(0, 80);
    EXPECT_THAT(said.err, HasSubstr(error));
    EXPECT_LT(said.err.size(), 1000u);
  }
}

TEST(ImportOfAScript, ReportsLongAndManySettingsInAFewLines) {
  const std::string large = cat("A=", std::string(500'000, 'a'), "\n");
  for (const std::string& settings :
       {std::string("$A --learning_rate $A"), std::string("x --unheard_of $A $A"),
        cat("x ", repeated("--unheard_of $A ", 3)), cat("x ", repeated("y ", 100'000))}) {
    const ProgramOutput said = import_of_script(cat(large, script_command, settings));
    EXPECT_LT(said.err.size(), 200'000u) << settings.substr(0, 80);
  }
  std::string many;
  for (int i = 0; i < 40'000; ++i) many += cat(" --unheard_of_", i, " 1");
  const ProgramOutput said = import_of_script(cat(script_command, "x", many));
  EXPECT_EQ(said.code, 2) << said.err.substr(0, 1000);
  EXPECT_THAT(said.err, HasSubstr("... and 39600 more"));
  EXPECT_LT(said.err.size(), 200'000u);
}

TEST(ImportOfAScript, ReadsDefaultsWithinDefaults) {
  const ProgramOutput said = import_of_script(
      cat("B=of-b\nunset A", script_command, "${A:-${B:-x}/${C:-y}} --save_path ${D:-${E:-z}}"));
  EXPECT_THAT(said.err, HasSubstr("model: of-b/y\n"));
  EXPECT_THAT(said.err, HasSubstr("output: z\n"));
}

}  // namespace
}  // namespace troupe::launch
