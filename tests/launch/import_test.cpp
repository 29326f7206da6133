// troupe import: configurations after published examples of each tool become run files that explain
// accepts, and each of their settings is reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/config/paths.h"
#include "launch/tools/migration/conversion.h"
#include "tests/launch/imported.h"

namespace troupe::launch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Example {
  const char* input;
  const char* options;
  const char* rows;
};

class PublishedExamples : public testing::TestWithParam<Example> {};

TEST_P(PublishedExamples, BecomeRunFilesThatExplainAccepts) {
  const auto [input, options, rows] = GetParam();
  const Imported got = import_of(cat(example(input), ' ', options));
  ASSERT_EQ(got.said.code, 0) << got.said.err;
  EXPECT_THAT(got.said.err, Not(HasSubstr("is not complete")));
  const ProgramOutput explained = run_program(
      cat("explain --config ", got.file, " --model ", data("models/stories260k/hf"), " --data ",
          data(rows),
          " --set eval.path=[] --set train.max_length=512 --set rollout.max_new_tokens=64"
          " --set parallel.tp=1 --set reward=boxed --set dpo.reference= --set critic.model= --set "
          "data.columns={} --set data.mix=[]"));
  EXPECT_EQ(explained.code, 0) << explained.err;
}

/// Each setting of the input has a line in the report: nothing is dropped.
TEST_P(PublishedExamples, HaveALineForEachSetting) {
  const auto [input, options, rows] = GetParam();
  const Imported got = import_of(cat(example(input), ' ', options));
  const tools::migration::ForeignRun run =
      value_or_throw(tools::migration::read_foreign_file(example(input)));
  EXPECT_GT(run.settings.size(), 8u);
  for (const tools::migration::ForeignSetting& each : run.settings)
    EXPECT_THAT(got.said.err, HasSubstr(cat("  ", each.key, ' '))) << each.key;
  EXPECT_THAT(got.said.err, Not(HasSubstr("Not known of")));
}

constexpr const char* pair_rows = "datasets/pairwise/hh_rlhf_harmless_base_test_head.jsonl";
constexpr const char* text_rows = "datasets/math/gsm8k_train_head.jsonl";

INSTANTIATE_TEST_SUITE_P(
    Each, PublishedExamples,
    testing::Values(
        Example{"trl_dpo.yaml", "--algorithm dpo --devices 4", pair_rows},
        Example{"trl_grpo.yaml", "", text_rows},
        Example{"llama_factory_lora_sft.yaml", "", text_rows},
        Example{"llama_factory_simpo.yaml", "", pair_rows}, Example{"verl_grpo.sh", "", text_rows},
        Example{"verl_ppo.yaml", "", text_rows}, Example{"verl_ppo_trainer.yaml", "", text_rows},
        Example{"verl_sft.sh", "8 out/gemma", text_rows},
        Example{"openr1_grpo.yaml", "", text_rows}, Example{"openrlhf_dpo.sh", "", pair_rows},
        Example{"openrlhf_ppo.sh", "", text_rows}, Example{"mindspeed_rl_grpo.yaml", "", text_rows},
        Example{"mindspeed_llm_dpo.sh", "", pair_rows},
        Example{"mindspeed_llm_pretrain.sh", "", "datasets/pretrain/c4_demo_head.jsonl"}),
    [](const auto& info) {
      std::string name = info.param.input;
      return name.substr(0, name.find('.'));
    });

TEST(Import, TrlsDpoKeepsItsLossesAndItsBatchArithmetic) {
  const Imported got = import_of(example("trl_dpo.yaml") + " --algorithm dpo --devices 4");
  const config::RunConfig config = config_in(got.file);
  EXPECT_EQ(name_of(config.compat), "trl");
  EXPECT_EQ(config.train.batch_size, 64);
  EXPECT_EQ(config.train.steps, 1000);
  EXPECT_EQ(config.train.learning_rate, 5e-7);
  EXPECT_EQ(config.dpo.loss.kind.size(), 2u);
  EXPECT_EQ(config.dpo.loss.weights, (std::vector<double>{1, 0.2}));
  EXPECT_THAT(got.said.err,
              AllOf(HasSubstr("2 (per_device_train_batch_size) x 8 (gradient_accumulation_steps) x "
                              "4 (devices) = 64"),
                    HasSubstr("optim rmsprop"), HasSubstr("AdamW is the only optimizer"),
                    HasSubstr("beta 0.1")));
}

TEST(Import, TrlsGrpoCountsCompletionsPerDeviceAndOursPrompts) {
  const Imported got = import_of(example("trl_grpo.yaml"));
  const config::RunConfig config = config_in(got.file);
  EXPECT_EQ(config.algorithm, "grpo");
  EXPECT_EQ(config.train.batch_size, 4);  // 8 x 4 completions of 8 a prompt
  EXPECT_EQ(config.grpo.minibatches, 2);  // 8 steps per generation, accumulated by 4
  EXPECT_EQ(config.grpo.epochs, 2);
  EXPECT_EQ(config.grpo.loss.surrogate.clip_low, 0.2);
  EXPECT_EQ(config.grpo.loss.surrogate.clip_high, 0.28);
  EXPECT_EQ(config.lora.rank, 32);
  EXPECT_EQ(config.lora.targets, (std::vector<std::string>{"q_proj", "v_proj"}));
  ASSERT_EQ(config.reward.size(), 2u);
  EXPECT_EQ(config.reward[1].weight, 0.5);
  EXPECT_EQ(config.train.keep_last, 2);
  EXPECT_EQ(config.train.seed, 7);
}

TEST(Import, LlamaFactorysLoraRun) {
  const Imported got = import_of(example("llama_factory_lora_sft.yaml"));
  const config::RunConfig config = config_in(got.file);
  EXPECT_EQ(config.algorithm, "sft");
  EXPECT_EQ(config.lora.rank, 8);
  EXPECT_EQ(config.train.batch_size, 8);
  EXPECT_EQ(config.train.learning_rate, 1e-4);
  EXPECT_EQ(config.train.epochs, 3);
  EXPECT_EQ(config.train.max_length, 2048);
  EXPECT_EQ(name_of(config.train.schedule), "cosine");
  EXPECT_EQ(config.train.warmup_ratio, 0.1);
  EXPECT_EQ(config.data.selection.first_rows, 1000);
  EXPECT_EQ(config.data.selection.split, 0.1);
  EXPECT_EQ(config.parallel.timeout, 604800) << "ddp_timeout bounds the wait for other ranks";
  EXPECT_EQ(config.train.timeout, config::RunConfig().train.timeout);
  EXPECT_EQ(config.data.paths, (std::vector<std::string>{"identity", "alpaca_en_demo"}));
  EXPECT_THAT(got.said.err, HasSubstr("identity, alpaca_en_demo are no files here"));
}

TEST(Import, PrefLossChoosesTheMethod) {
  const config::RunConfig config = config_in(import_of(example("llama_factory_simpo.yaml")).file);
  EXPECT_EQ(config.algorithm, "simpo");
  EXPECT_EQ(config.simpo.loss.beta, 2);
  EXPECT_EQ(config.simpo.loss.gamma, 1);
  EXPECT_EQ(config.lora.rank, 0);
}

TEST(Import, VerlsOverridesInAScript) {
  const Imported got = import_of(example("verl_grpo.sh"));
  const config::RunConfig config = config_in(got.file);
  EXPECT_EQ(config.algorithm, "grpo");
  EXPECT_EQ(name_of(config.compat), "verl");
  EXPECT_EQ(config.grpo.group, 5);
  EXPECT_EQ(config.grpo.loss.beta, 0.001);
  EXPECT_EQ(config.train.batch_size, 256);
  EXPECT_EQ(config.grpo.minibatches, 4);
  EXPECT_EQ(config.train.max_length, 1536);
  EXPECT_EQ(config.train.save_every, 80);  // 20 rollouts of 4 updates
  EXPECT_EQ(config.reward.at(0).rule, "gsm8k");
  EXPECT_THAT(got.said.err, HasSubstr("1024 (data.train_batch_size) / 256"));
}

TEST(Import, VerlsPpoWithARewardModelAndAnOverride) {
  const Imported got =
      import_of(example("verl_ppo.yaml") + " algorithm.lam=0.9 trainer.total_training_steps=10");
  const config::RunConfig config = config_in(got.file);
  EXPECT_EQ(config.algorithm, "ppo");
  EXPECT_EQ(config.ppo.gae.lambda, 0.9);
  EXPECT_EQ(config.ppo.kl_coef, 0.001);
  EXPECT_EQ(config.train.steps, 10 * 2 * 4);
  EXPECT_EQ(config.reward.at(0).rule, "model");
}

TEST(Import, VerlsIntervalsMayBeWords) {
  const Imported off = import_of(example("verl_ppo.yaml") + " trainer.test_freq=False");
  EXPECT_EQ(config_in(off.file).eval.every, 0);
  const Imported epochs =
      import_of(example("verl_ppo.yaml") + " trainer.test_freq=after_each_epoch");
  EXPECT_EQ(config_in(epochs.file).algorithm, "ppo");
  EXPECT_THAT(epochs.said.err, HasSubstr("trainer.test_freq after_each_epoch"));
}

TEST(Import, VerlsReferencesAreResolvedAndAModelThatIsOffIsNoReward) {
  const Imported got = import_of(example("verl_ppo_trainer.yaml"));
  const config::RunConfig config = config_in(got.file);
  EXPECT_EQ(config.output, "checkpoints/verl_examples/gsm8k");
  EXPECT_EQ(config.critic.model, config.model);
  EXPECT_EQ(config.rollout.sampling.max_new_tokens, 256);
  EXPECT_EQ(config.reward.at(0).rule, "gsm8k");
  EXPECT_THAT(got.said.err, AllOf(HasSubstr("reward_model.enable is off"),
                                  HasSubstr("response_length 256 (line "), Not(HasSubstr("${"))));
}

TEST(Import, ReferencesInACircleStay) {
  const std::string file = scratch_folder() + "/circle.yaml";
  ASSERT_TRUE(
      write_file_durably(file,
                         "trainer: {default_local_dir: 'a${trainer.project_name}', project_name: "
                         "'b${trainer.default_local_dir}'}\nalgorithm: {adv_estimator: grpo}\n"));
  EXPECT_EQ(run_program("import " + file).code, 2) << "no model and no data";
}

TEST(Import, AScriptsArgumentsAreNamedAndItsHomeIsATilde) {
  EXPECT_EQ(config_in(import_of(example("verl_sft.sh") + " 8 out/gemma").file).output, "out/gemma");
  const Imported got = import_of(example("verl_sft.sh") + " --env save_path=there");
  EXPECT_EQ(got.said.code, 0) << got.said.err;
  const ProgramOutput unknown = run_program(cat("import ", example("verl_sft.sh")));
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err,
              HasSubstr("could not be evaluated: trainer.default_local_dir (depends on the "
                        "script's argument 2 (line 4)); give"));
  EXPECT_TRUE(unknown.err.ends_with("write the key into the run file\n"));
  const config::RunConfig config = config_in(got.file);
  EXPECT_EQ(config.data.paths.at(0),
            value_or_throw(config::expand_home("a", "~/data/gsm8k/train.parquet")));
  EXPECT_EQ(config.data.columns.at("prompt"), "extra_info.question");
  EXPECT_EQ(config.data.columns.at("completion"), "extra_info.answer");
}

TEST(Import, WeightsBelongToTheFunctionsThatBecameRules) {
  const Imported got = import_of(example("openr1_grpo.yaml"));
  const config::RunConfig config = config_in(got.file);
  ASSERT_EQ(config.reward.size(), 2u);
  EXPECT_EQ(config.reward[0].rule, "boxed");
  EXPECT_EQ(config.reward[0].weight, 1);
  EXPECT_EQ(config.reward[1].rule, "format");
  EXPECT_EQ(config.reward[1].weight, 0.5);
  EXPECT_EQ(config.data.columns.at("prompt"), "problem");
  EXPECT_THAT(got.said.err, HasSubstr("tag_count: write its Python function as a rule python"));
}

TEST(Import, OpenRlhfsLabelKeyDependsOnTheMethod) {
  EXPECT_EQ(config_in(import_of(example("openrlhf_kto.sh")).file).data.columns.at("label"),
            "score");
  const ProgramOutput prm = run_program(
      "import -- openrlhf.cli.train_prm --pretrain M --dataset D --save_path O --input_key text "
      "--label_key marks --reward_tokens + -");
  const config::RunConfig config = value_or_throw(recipes::config_of(prm.out, "stdout"));
  EXPECT_EQ(config.data.columns.at("input"), "text");
  EXPECT_EQ(config.data.columns.at("value"), "marks");
}

TEST(Import, OpenRlhfsNormalizedRewardModel) {
  const ProgramOutput said = run_program(
      "import -- openrlhf.cli.train_ppo_ray --pretrain M --prompt_data D --save_path O "
      "--normalize_reward --reward_pretrain R");
  const config::RunConfig config = value_or_throw(recipes::config_of(said.out, "stdout"));
  ASSERT_EQ(config.reward.size(), 1u);
  EXPECT_EQ(config.reward[0].options.find("normalize")->string(), "saved");
  EXPECT_THAT(said.err, HasSubstr("normalize_reward true  ->  normalize: saved"));
}

TEST(Import, OpenRlhfsCommandLineBehindALauncher) {
  const ProgramOutput said = run_program(
      "import -- deepspeed --num_gpus 8 --module openrlhf.cli.train_rm --pretrain M "
      "--train_batch_size 64 --learning_rate 9e-6 --max_epochs 2 --loss logexp --adam_betas 0.9 "
      "0.99 --zero_stage 3 --save_path O --dataset D");
  ASSERT_EQ(said.code, 0) << said.err;
  const config::RunConfig config = value_or_throw(recipes::config_of(said.out, "stdout"));
  EXPECT_EQ(config.algorithm, "orm");
  EXPECT_EQ(config.train.batch_size, 64);
  EXPECT_EQ(config.train.epochs, 2);
  EXPECT_EQ(config.train.optimizer.betas, (std::array<double, 2>{0.9, 0.99}));
  EXPECT_EQ(name_of(config.orm.loss.kind), "log_exp");
  EXPECT_THAT(said.err, AllOf(HasSubstr("zero_stage 3"), HasSubstr("deepspeed --num_gpus 8")));
}

TEST(Import, OpenRlhfsPpoCountsSamples) {
  const config::RunConfig config = config_in(import_of(example("openrlhf_ppo.sh")).file);
  EXPECT_EQ(config.algorithm, "ppo");
  EXPECT_EQ(config.train.batch_size, 128);
  EXPECT_EQ(config.ppo.minibatches, 8);
  EXPECT_EQ(config.ppo.policy.surrogate.clip_high, 0.27);
  EXPECT_EQ(config.data.columns.at("prompt"), "context_messages");
}

TEST(Import, MindSpeedsConservativeSmoothingAndLikelihoodTerm) {
  const Imported got = import_of(example("mindspeed_llm_dpo.sh"));
  const config::RunConfig config = config_in(got.file);
  EXPECT_EQ(config.algorithm, "dpo");
  EXPECT_EQ(config.chat_template, "qwen");
  EXPECT_EQ(config.parallel.tp, 2);
  EXPECT_EQ(config.train.steps, 200);
  EXPECT_NEAR(config.train.min_lr_ratio, 0.1, 1e-12);
  EXPECT_EQ(config.dpo.loss.weights, (std::vector<double>{1, 0.1}));
}

TEST(Import, MindSpeedsPretraining) {
  const Imported got = import_of(example("mindspeed_llm_pretrain.sh"));
  const config::RunConfig config = config_in(got.file);
  EXPECT_EQ(config.algorithm, "pretrain");
  ASSERT_EQ(config.data.mix.size(), 2u);
  EXPECT_THAT(config.data.mix[1].paths, ElementsAre("./dataset/code_text_document"));
  EXPECT_EQ(config.data.mix[1].weight, 0.7);
  EXPECT_EQ(config.pretrain.split, "100,0,0");
  EXPECT_TRUE(config.pretrain.reset_documents);
  EXPECT_TRUE(config.pretrain.mask_end_of_document);
  EXPECT_EQ(config.eval.every, 0);
  EXPECT_EQ(config.init.std_dev, 0.01);
  EXPECT_EQ(config.train.batch_rampup.start, 8);
  EXPECT_EQ(config.train.batch_rampup.increment, 8);
  EXPECT_EQ(config.train.batch_rampup.samples, 1000);
  EXPECT_EQ(config.train.batch_size, 32);
  EXPECT_EQ(config.train.steps, 2000);
  EXPECT_EQ(config.train.max_length, 4096);
  EXPECT_EQ(config.parallel.zero, 1);
  EXPECT_EQ(config.train.optimizer.betas, (std::array<double, 2>{0.9, 0.95}));
}

TEST(Import, MindSpeedRlsVerifiersAreRules) {
  const config::RunConfig config = config_in(import_of(example("mindspeed_rl_grpo.yaml")).file);
  EXPECT_EQ(config.grpo.minibatches, 2);
  EXPECT_EQ(config.train.batch_size, 32);
  EXPECT_EQ(config.model, "./Qwen2.5-7B");
  EXPECT_EQ(config.train.optimizer.betas, (std::array<double, 2>{0.9, 0.95}));
  ASSERT_EQ(config.reward.size(), 2u);
  EXPECT_EQ(config.reward[0].rule, "boxed");
  EXPECT_EQ(config.reward[1].weight, 0.5);
}

TEST(Import, PythonRewardFunctionsAreRules) {
  const auto reward_of = [](const std::string& words) {
    const ProgramOutput said = run_program("import " + words);
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_THAT(said.err, HasSubstr("is no file here"));
    const config::RunConfig config = value_or_throw(recipes::config_of(said.out, "stdout"));
    EXPECT_EQ(config.reward.size(), 1u);
    config::RewardRule rule = config.reward.at(0);
    EXPECT_EQ(rule.rule, "python");
    return rule.options.dump();
  };
  EXPECT_EQ(reward_of("-- openrlhf.cli.train_ppo_ray --pretrain M --prompt_data D --save_path O "
                      "--reward.remote_url /functions/math.py"),
            R"({"function":"/functions/math.py:reward_func","signature":"openrlhf"})");
  EXPECT_EQ(
      reward_of("-- python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
                "actor_rollout_ref.model.path=M data.train_files=D actor_rollout_ref.rollout.n=4 "
                "reward.custom_reward_function.path=recipe/retool.py "
                "reward.custom_reward_function.name=score_of "
                "+reward.custom_reward_function.reward_kwargs.scale=0.5 "
                "+reward.custom_reward_function.reward_kwargs.mode=strict"),
      R"({"function":"recipe/retool.py:score_of","signature":"verl",)"
      R"("arguments":{"scale":0.5,"mode":"strict"}})");
  EXPECT_EQ(
      reward_of("-- python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
                "actor_rollout_ref.model.path=M data.train_files=D actor_rollout_ref.rollout.n=4 "
                "custom_reward_function.path=gsm8k.py"),
      R"({"function":"gsm8k.py:compute_score","signature":"verl"})");
  EXPECT_EQ(reward_of("-- trl grpo --model_name_or_path M --dataset_name D --output_dir O "
                      "--reward_funcs my_lib.rewards.custom_reward"),
            R"({"function":"my_lib/rewards.py:custom_reward","signature":"trl"})");
}

/// Every file here: a conversion with exit code 0 is a run file that train accepts, where the
/// model, the data and the files that it names exist.
TEST(Import, ExitCode0MeansThatTrainAcceptsTheRunFile) {
  int converted = 0, files = 0;
  for (const auto& each : std::filesystem::recursive_directory_iterator(data("import"))) {
    const std::string path = each.path().string();
    if (!path.ends_with(".sh") && !path.ends_with(".yaml")) continue;
    ++files;
    const Imported got = import_of(path);
    if (got.said.code != 0) {
      EXPECT_TRUE(got.said.code == 2 || got.said.code == 3) << path << got.said.err;
      continue;
    }
    ++converted;
    const auto accepted = recipes::resolve({.algorithm = "", .file = got.file, .sets = {}});
    if (!accepted) {
      EXPECT_EQ(accepted.error().code, Errc::not_found) << path << ": " << accepted.error().what;
    }
  }
  EXPECT_GE(files, 24);
  EXPECT_GE(converted, files / 2);
}

TEST(Import, NumbersThatMeanNothingAreRefusedByName) {
  const auto refused = [](const std::string& settings) {
    const std::string file = scratch_folder() + "/numbers.yaml";
    EXPECT_TRUE(write_file_durably(
        file, cat("stage: sft\nmodel_name_or_path: M\ndataset: D\noutput_dir: O\n"
                  "template: qwen\n",
                  settings)));
    const ProgramOutput said = run_program("import --devices 1 " + file);
    EXPECT_EQ(said.code, 2) << settings << said.out;
    EXPECT_EQ(said.out, "") << settings;
    return said.err;
  };
  EXPECT_THAT(refused("per_device_train_batch_size: 100000000000000000000\n"
                      "gradient_accumulation_steps: -3\n"),
              HasSubstr("gradient_accumulation_steps -3: a whole number above 0 is expected"));
  EXPECT_THAT(refused("per_device_train_batch_size: 1e10\n"),
              AllOf(HasSubstr("a batch of 1e+10 (per_device_train_batch_size) x 1 "
                              "(gradient_accumulation_steps, the tool's default)"),
                    HasSubstr("at most 1000000000 rows")));
  EXPECT_THAT(refused("per_device_train_batch_size: 2.5\n"),
              HasSubstr("per_device_train_batch_size 2.5: a whole number above 0"));
  EXPECT_THAT(refused("per_device_train_batch_size: eight\n"),
              HasSubstr("per_device_train_batch_size \"eight\": a finite number is expected"));
  EXPECT_THAT(refused("learning_rate: fast\n"),
              HasSubstr("learning_rate fast (line 6) is no value for train.learning_rate: "));
  EXPECT_THAT(refused("learning_rate: -1e-4\n"),
              HasSubstr("is no value for train.learning_rate: "));
  EXPECT_THAT(refused("learning_rate: nan\n"), HasSubstr("is no value for train.learning_rate: "));
  EXPECT_THAT(refused("cutoff_len: 1e30\n"), HasSubstr("is no value for train.max_length: "));
  EXPECT_THAT(refused("num_train_epochs: -2\n"), HasSubstr("is no value for train.epochs: "));
  EXPECT_THAT(refused("adam_beta1: two\n"), HasSubstr("is no value for train.betas: "));
  const auto verl = [](const std::string& words) {
    return run_program(
               "import -- python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
               "actor_rollout_ref.model.path=M data.train_files=D actor_rollout_ref.rollout.n=4 " +
               words)
        .err;
  };
  EXPECT_THAT(verl("data.train_batch_size=0"),
              HasSubstr("data.train_batch_size 0: a whole number"));
  EXPECT_THAT(verl("data.max_prompt_length=x data.max_response_length=8"),
              HasSubstr("is no value for train.max_length: "));
  EXPECT_THAT(verl("trainer.total_training_steps=-5"), HasSubstr("is no value for train.steps: "));
}

TEST(Import, NumbersInAnotherNotationAreUsedOrNamed) {
  const auto verl = [](const std::string& words) {
    return run_program(
        "import -- python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
        "actor_rollout_ref.model.path=M data.train_files=D actor_rollout_ref.rollout.n=4 "
        "actor_rollout_ref.actor.clip_ratio_low=10 " +
        words);
  };
  const std::string filter = "algorithm.rollout_correction.rollout_rs_threshold=";
  const ProgramOutput used = verl(
      "actor_rollout_ref.actor.optim.betas=\"'[0.9,0.95]'\" "
      "actor_rollout_ref.actor.optim.lr=+2e-6 trainer.total_training_steps=1_500 "
      "algorithm.rollout_correction.rollout_is_threshold=0.5_4.0 " +
      filter + "0.6_1.6");
  EXPECT_EQ(used.code, 0) << used.err;
  for (const char* line : {"steps: 6000 ", "learning_rate: 2e-6 ", "filter_low: 0.6 ",
                           "filter_high: 1.6 ", "correction_low: 0.5 ", "correction_high: 4 "})
    EXPECT_THAT(used.out, HasSubstr(line));

  const ProgramOutput several = verl(filter + "0.6_1.6,2.5");
  EXPECT_EQ(several.code, 2);
  EXPECT_THAT(several.out, Not(HasSubstr("filter_high")));
  EXPECT_THAT(several.err, HasSubstr("Not converted, as a value could not be used: "
                                     "algorithm.rollout_correction.rollout_rs_threshold (expected "
                                     "HIGH or LOW_HIGH"));
  for (const char* lr : {"1e-5,1e-6", "'[1e-5,1e-6]'", "1e-5_1e-6", "1e-5:2e-5", "_1", "1__0"}) {
    const ProgramOutput said = verl(cat("actor_rollout_ref.actor.optim.lr=", lr));
    EXPECT_EQ(said.code, 2) << lr;
    EXPECT_THAT(said.err,
                HasSubstr("a value could not be used: actor_rollout_ref.actor.optim.lr ("))
        << lr;
    EXPECT_THAT(said.out, Not(HasSubstr("learning_rate"))) << lr;
  }
}

TEST(Import, AsksForTheToolAndTheMethodWhereTheyAreNotSaid) {
  const std::string file = scratch_folder() + "/short.yaml";
  ASSERT_TRUE(write_file_durably(file, "output_dir: out\nlearning_rate: 1e-5\n"));
  const ProgramOutput either = run_program("import " + file);
  EXPECT_EQ(either.code, 2);
  EXPECT_THAT(either.err, HasSubstr("could be of trl or llama-factory; give --tool"));
  const ProgramOutput method = run_program(cat("import ", file, " --tool trl"));
  EXPECT_EQ(method.code, 2);
  EXPECT_THAT(method.err, HasSubstr("do not say the method; add --algorithm"));
  const ProgramOutput incomplete = run_program(cat("import ", file, " --tool trl --algorithm sft"));
  EXPECT_EQ(incomplete.code, 2) << "no model and no data";
  EXPECT_THAT(incomplete.out, HasSubstr("learning_rate: 1e-5"));
  EXPECT_THAT(incomplete.err, HasSubstr("The run file is not complete: "));
  EXPECT_EQ(run_program(cat("import ", file, " --tool word")).code, 2);
}

TEST(Import, ASettingThatNobodyKnowsIsReported) {
  const std::string file = scratch_folder() + "/odd.yaml";
  ASSERT_TRUE(write_file_durably(file, "stage: sft\ntemplate: qwen\nmy_own_flag: 3\n"));
  const ProgramOutput said = run_program("import " + file);
  EXPECT_THAT(said.err, AllOf(HasSubstr("Not known of LLaMA-Factory"), HasSubstr("my_own_flag 3")));
}

}  // namespace
}  // namespace troupe::launch
