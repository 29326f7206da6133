// inference: the flags of MindSpeed-LLM's inference.py, and what its tasks print.
#include "launch/tools/megatron/inference.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "tests/launch/program.h"

namespace troupe::launch::tools::megatron {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

tools::megatron::InferenceRun run_of(const std::vector<std::string>& words) {
  return value_or_throw(
      tools::megatron::inference_run(value_or_throw(tools::megatron::read_command_line(words))));
}

std::string refusal(const std::vector<std::string>& words) {
  const auto run =
      tools::megatron::inference_run(value_or_throw(tools::megatron::read_command_line(words)));
  return run ? "accepted" : run.error().what;
}

ProgramOutput run_script(const std::string& arguments, const std::string& input = "") {
  return run_as(TROUPE_SCRIPTS "/inference", arguments, input);
}

/// The text behind "MindSpeed-LLM:" of each task.
std::vector<std::string> answers(const std::string& out) {
  constexpr std::string_view head = "MindSpeed-LLM:\n", tail = "\n\nElapsed: ";
  std::vector<std::string> all;
  for (auto at = out.find(head); at != std::string::npos; at = out.find(head, at + 1))
    all.push_back(out.substr(at + head.size(), out.find(tail, at) - at - head.size()));
  return all;
}

/// What `troupe generate` prints for the prompt of inference.py.
std::string generated(const std::string& model, const std::string& settings) {
  const ProgramOutput said =
      run_program(cat("generate --threads 1 --generation-config none --max-new-tokens 9 --model ",
                      model, " ", settings),
                  "{\"prompt\": \"how are you?\"}\n");
  EXPECT_EQ(said.code, 0) << said.err;
  return json_lines(said.out).at(0).find("text")->string();
}

/// Without the space that the tokenizer puts in front of the first word.
std::string trimmed(const std::string& text) {
  return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
}

const std::string story_model = data("models/stories260k/hf");
/// Flags of a published script that describe the model or do nothing here.
const std::string published_flags =
    "--use-mcore-models --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
    "--num-layers 5 --hidden-size 64 --num-attention-heads 8 --group-query-attention "
    "--num-query-groups 4 --seq-length 512 --max-position-embeddings 512 --swiglu "
    "--normalization RMSNorm --micro-batch-size 1 --global-batch-size 16 --no-load-optim "
    "--no-load-rng --exit-on-missing-checkpoint --make-vocab-size-divisible-by 1 "
    "--tokenizer-type PretrainedFromHF --tokenizer-not-use-fast --use-flash-attn "
    "--attention-softmax-in-fp32 --use-kv-cache --tokenizer-name-or-path ";

TEST(Inference, FlagsHaveTheDefaultsOfTheScript) {
  const tools::megatron::InferenceRun run = run_of({"--load", "M"});
  EXPECT_THAT(
      run.tasks,
      ElementsAre(commands::Task::greedy, commands::Task::do_sample, commands::Task::beam_search,
                  commands::Task::beam_search_with_sampling, commands::Task::chat));
  EXPECT_EQ(run.options.settings.dump(), R"({"max_new_tokens":128})");
  EXPECT_EQ(run.sampling.dump(), R"({"top_k":50,"top_p":0.95,"temperature":0.7})");
  EXPECT_EQ(run.options.chat_template, "empty");
  EXPECT_EQ(run.options.history_turns, 3);
  EXPECT_EQ(run.options.model.dtype, engine::ops::Precision::f32);
}

TEST(Inference, FlagsChangeTheSettings) {
  const tools::megatron::InferenceRun run = run_of({"--task",
                                                    "chat",
                                                    "greedy",
                                                    "--top-k",
                                                    "5",
                                                    "--top-p",
                                                    "0.5",
                                                    "--temperature",
                                                    "1.5",
                                                    "--max-new-tokens",
                                                    "7",
                                                    "--seed",
                                                    "3",
                                                    "--num-beams",
                                                    "4",
                                                    "--history-turns",
                                                    "2",
                                                    "--bf16",
                                                    "--prompt-type",
                                                    "qwen"});
  EXPECT_THAT(run.tasks, ElementsAre(commands::Task::chat, commands::Task::greedy));
  EXPECT_EQ(run.options.settings.dump(), R"({"max_new_tokens":7,"seed":3})");
  EXPECT_EQ(run.sampling.dump(), R"({"top_k":5,"top_p":0.5,"temperature":1.5})");
  EXPECT_EQ(run.beams.dump(), R"({"num_beams":4})");
  EXPECT_EQ(run.options.chat_template, "qwen");
  EXPECT_EQ(run.options.history_turns, 2);
  EXPECT_EQ(run.options.model.dtype, engine::ops::Precision::bf16);
  EXPECT_EQ(run_of({"--hf-chat-template"}).options.chat_template, "");
}

TEST(Inference, RefusesWhatContradicts) {
  EXPECT_THAT(refusal({"--task", "greedy_search"}), HasSubstr("expected greedy, do_sample"));
  EXPECT_THAT(refusal({"--hf-chat-template", "--prompt-type", "qwen"}), HasSubstr("one of both"));
  EXPECT_THAT(refusal({"--history-turns", "0"}), HasSubstr("at least 1"));
  EXPECT_THAT(refusal({"--top-p", "much"}), HasSubstr("expected a number"));
}

TEST(Inference, AnswersAsGenerateDoesWithTheSettingsOfEachTask) {
  const ProgramOutput said = run_script(
      cat(published_flags, story_model, " --load ", story_model,
          " --task greedy do_sample beam_search beam_search_with_sampling --max-new-tokens 9 "
          "--seed 5 --top-k 20 --temperature 1.2"));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("You:\nhow are you?"));
  const std::string sampling = "--seed 5 --top-k 20 --top-p 0.95 --temperature 1.2";
  const auto found = answers(said.out);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(trimmed(found[0]), trimmed(generated(story_model, "--task greedy")));
  EXPECT_EQ(trimmed(found[1]), trimmed(generated(story_model, "--task do_sample " + sampling)));
  EXPECT_EQ(trimmed(found[2]), trimmed(generated(story_model, "--task beam_search")));
  EXPECT_EQ(trimmed(found[3]),
            trimmed(generated(story_model, "--task beam_search_with_sampling " + sampling)));
}

TEST(Inference, ReadsACheckpointOfMegatron) {
  const std::string root = scratch_folder();
  ASSERT_EQ(
      run_program(cat("convert --use-mcore-models --load-dir ", story_model, " --save-dir ", root,
                      "/mg --target-tensor-parallel-size 2 --target-pipeline-parallel-size 2"))
          .code,
      0);
  const std::string flags = " --task greedy --max-new-tokens 9";
  const ProgramOutput said =
      run_script(cat(published_flags, story_model, " --load ", root, "/mg", flags));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(answers(said.out), answers(run_script(cat("--load ", story_model, flags)).out));
  const ProgramOutput without = run_script(cat("--load ", root, "/mg", flags));
  EXPECT_NE(without.code, 0);
  EXPECT_THAT(without.err, HasSubstr("--tokenizer-name-or-path"));
}

TEST(Inference, ChatsUntilQuitWithBareCommands) {
  const std::string flags = cat("--load ", story_model, " --task chat --max-new-tokens 4 --seed 2");
  const ProgramOutput said = run_script(flags, "Hello\nnew\nHello\nquit\nnot sent\n");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(std::count(said.out.begin(), said.out.end(), '\n'), 2) << said.out;
}

TEST(Inference, EndTokensAndModelFlagsAreChecked) {
  const std::string flags = cat("--load ", story_model, " --task greedy --max-new-tokens 9 ");
  EXPECT_THAT(run_script(flags + "--add-eos-token nothing").err, HasSubstr("no token of"));
  EXPECT_THAT(run_script(flags + "--num-layers 6").err,
              HasSubstr("--num-layers 6 contradicts config.json, which says 5"));
  EXPECT_THAT(run_script(flags + "train.steps=3").err, HasSubstr("no settings of a run"));
  const ProgramOutput trained = run_as(TROUPE_SCRIPTS "/pretrain_gpt", "--top-k 5");
  EXPECT_EQ(trained.code, 2);
  EXPECT_THAT(trained.err, HasSubstr("--top-k: a flag of inference, not of pretrain_gpt"));
}

// That of a run, its checkpoint in PEFT's form, and its checkpoint in Megatron's.
TEST(Inference, TakesAnAdapterInItsThreeForms) {
  const std::string root = scratch_folder(), run = root + "/run", lora = root + "/lora";
  std::string rows;
  for (const char* answer : {"A cat.", "The dog ran.", "Lily.", "It is red."})
    rows += cat("{\"instruction\": \"how are you?\", \"output\": \"", answer, "\"}\n");
  value_or_throw(write_file_durably(root + "/rows.jsonl", rows));
  const ProgramOutput trained = run_program(cat(
      "posttrain_gpt --stage sft --is-instruction-dataset --finetune --prompt-type empty --load ",
      story_model, " --tokenizer-name-or-path ", story_model, " --data-path ", root,
      "/rows.jsonl --save ", run,
      " --seq-length 64 --micro-batch-size 1 --global-batch-size 4 --train-iters 3 --lr 0.03 "
      "--lr-decay-style constant --norm-epsilon 1e-5 --attention-dropout 0 --hidden-dropout 0 "
      "--lora-r 4 --lora-alpha 8 --lora-target-modules linear_qkv linear_proj linear_fc1 "
      "linear_fc2"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  fs::create_directory(lora);
  fs::rename(run + "/iter_0000003", lora + "/iter_0000003");
  fs::rename(run + "/latest_checkpointed_iteration.txt",
             lora + "/latest_checkpointed_iteration.txt");
  const std::string expected =
      trimmed(generated(story_model, cat("--adapter ", run, "/latest --temperature 0")));
  ASSERT_NE(expected, trimmed(generated(story_model, "--temperature 0")));
  for (const std::string& folder : {run, run + "/latest", lora}) {
    const ProgramOutput said = run_script(
        cat("--task greedy --max-new-tokens 9 --load ", story_model, " --tokenizer-name-or-path ",
            story_model, " --lora-r 4 --lora-alpha 8 --lora-load ", folder));
    ASSERT_EQ(said.code, 0) << said.err;
    EXPECT_THAT(answers(said.out), ElementsAre(expected)) << folder;
  }
  EXPECT_THAT(run_script(cat("--task greedy --load ", story_model, " --tokenizer-name-or-path ",
                             story_model, " --lora-r 3 --lora-load ", run))
                  .err,
              HasSubstr("--lora-r 3 contradicts"));
  const ProgramOutput converted = run_program(
      cat("convert --load-model-type mg --save-model-type hf --save-lora-to-hf --lora-alpha 8 "
          "--lora-r 4 --load-dir ",
          lora, " --save-dir ", root, "/hf --hf-cfg-dir ", story_model));
  ASSERT_EQ(converted.code, 0) << converted.err;
  EXPECT_EQ(trimmed(generated(story_model, cat("--adapter ", root, "/hf --temperature 0"))),
            expected);
}

}  // namespace
}  // namespace troupe::launch::tools::megatron
