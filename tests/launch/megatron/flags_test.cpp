// The flags of Megatron's scripts: their classes, and what each acting flag of the published Qwen3
// command line changes.
#include "launch/tools/megatron/flags.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "engine/checkpoint/megatron/layout.h"
#include "engine/models/stages.h"
#include "launch/tools/convert/layer_split.h"
#include "launch/tools/megatron/training.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch::tools::megatron {
namespace {

using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

/// The published command line of Qwen3-1.7B with the sizes of small_config() and these folders.
Words published(const std::string& model, const std::string& save) {
  return {"--use-mcore-models",
          "--spec",
          "mindspeed_llm.tasks.models.spec.qwen3_spec",
          "layer_spec",
          "--kv-channels",
          "4",
          "--qk-layernorm",
          "--norm-topk-prob",
          "--tokenizer-name-or-path",
          model,
          "--max-position-embeddings",
          "32",
          "--num-layers",
          "5",
          "--hidden-size",
          "32",
          "--ffn-hidden-size",
          "24",
          "--num-attention-heads",
          "8",
          "--tokenizer-type",
          "PretrainedFromHF",
          "--make-vocab-size-divisible-by",
          "1",
          "--padded-vocab-size",
          "67",
          "--rotary-base",
          "10000",
          "--disable-bias-linear",
          "--position-embedding-type",
          "rope",
          "--normalization",
          "RMSNorm",
          "--swiglu",
          "--attention-softmax-in-fp32",
          "--no-gradient-accumulation-fusion",
          "--group-query-attention",
          "--num-query-groups",
          "4",
          "--data-path",
          "enwiki",
          "--split",
          "100,0,0",
          "--log-interval",
          "2",
          "--save-interval",
          "20",
          "--eval-interval",
          "20",
          "--eval-iters",
          "0",
          "--no-load-optim",
          "--no-load-rng",
          "--use-flash-attn",
          "--use-fused-rotary-pos-emb",
          "--use-rotary-position-embeddings",
          "--use-fused-swiglu",
          "--use-fused-rmsnorm",
          "--no-masked-softmax-fusion",
          "--use-distributed-optimizer",
          "--micro-batch-size",
          "1",
          "--global-batch-size",
          "32",
          "--lr",
          "1.25e-6",
          "--lr-decay-style",
          "cosine",
          "--min-lr",
          "1.25e-7",
          "--weight-decay",
          "1e-1",
          "--lr-warmup-fraction",
          "0.01",
          "--attention-dropout",
          "0.0",
          "--init-method-std",
          "0.01",
          "--hidden-dropout",
          "0.0",
          "--clip-grad",
          "1.0",
          "--adam-beta1",
          "0.9",
          "--adam-beta2",
          "0.95",
          "--initial-loss-scale",
          "4096",
          "--seed",
          "42",
          "--bf16",
          "--train-iters",
          "20",
          "--seq-length",
          "32",
          "--no-shared-storage",
          "--tensor-model-parallel-size",
          "1",
          "--pipeline-model-parallel-size",
          "2",
          "--distributed-backend",
          "nccl",
          "--load",
          model,
          "--save",
          save};
}

/// Replaces the values of a flag; without values, removes a switch.
Words changed(Words words, const std::string& flag, const Words& values) {
  const auto at = std::ranges::find(words, flag);
  auto end = at + 1;
  while (end != words.end() && !end->starts_with("--")) ++end;
  const auto begin = values.empty() ? at : at + 1;
  words.insert(words.erase(begin, end), values.begin(), values.end());
  return words;
}

/// Switches beside others that say the same: they change no setting, but what is checked.
const std::set<std::string> checked_switches{"--qk-layernorm", "--disable-bias-linear", "--swiglu",
                                             "--use-rotary-position-embeddings"};

class PublishedCommand : public testing::Test {
 protected:
  PublishedCommand() {
    for (const std::string& folder : {model_, model_ + "2"}) {
      std::filesystem::create_directory(folder);
      put_small_model(folder, small_config("Qwen3ForCausalLM"));
    }
  }

  /// Another config.json for the same weights.
  void put_config(const Json& config) const {
    value_or_throw(write_file_durably(model_ + "/config.json", config.dump(2)));
  }

  /// The settings of a run, or the error.
  std::string result(const Words& words) const {
    const auto line = tools::megatron::read_command_line(words);
    if (!line) return line.error().what;
    const auto run = tools::megatron::training_run("pretrain_gpt", *line);
    if (!run) return run.error().what;
    recipes::Sources sources = run->sources;
    sources.check_files = false;
    const auto resolved = recipes::resolve(sources);
    if (!resolved) return resolved.error().what;
    // The settings, too: some matter only where the data has token files, or weights are random.
    std::string text = cat(run->save, '\n', join(sources.sets, "\n"), '\n');
    for (const auto& option : sources.options) text += cat(option.key, '=', option.value, '\n');
    return text + recipes::to_yaml(resolved->config);
  }

  std::string root_ = scratch_folder(), model_ = root_ + "/hf";
};

TEST(Flags, HaveTheClassesOfTheRequirement) {
  std::set<std::string> already_so, no_effect, other;
  for (const std::string& word : published("M", "S")) {
    if (!word.starts_with("--")) continue;
    const tools::megatron::Flag* flag = find_flag(word);
    ASSERT_NE(flag, nullptr) << word;
    if (tools::megatron::class_of(*flag) == tools::megatron::FlagClass::already_so)
      already_so.insert(word);
    if (tools::megatron::class_of(*flag) == tools::megatron::FlagClass::no_effect)
      no_effect.insert(word);
    if (tools::megatron::class_of(*flag) == tools::megatron::FlagClass::refused) other.insert(word);
  }
  EXPECT_EQ(already_so, (std::set<std::string>{
                            "--attention-softmax-in-fp32", "--distributed-backend",
                            "--no-gradient-accumulation-fusion", "--no-masked-softmax-fusion",
                            "--no-shared-storage", "--spec", "--tokenizer-type", "--use-flash-attn",
                            "--use-fused-rmsnorm", "--use-fused-rotary-pos-emb",
                            "--use-fused-swiglu", "--use-mcore-models"}));
  EXPECT_EQ(no_effect, std::set<std::string>{"--norm-topk-prob"});
  EXPECT_TRUE(other.empty()) << *other.begin();
}

TEST(Flags, AreListedOnceAndSayWhyTheyAreRefused) {
  std::set<std::string> seen;
  const ProgramOutput said = run_program("flags --json");
  ASSERT_EQ(said.code, 0) << said.err;
  for (const Json& line : json_lines(said.out)) {
    if (line.is_null()) continue;
    const std::string flag = line.find("flag")->string();
    EXPECT_TRUE(seen.insert(flag).second) << flag;
    const bool why = !line.find("remark")->string().empty();
    EXPECT_TRUE(why || line.find("class")->string() == "acts") << flag;
  }
  EXPECT_GT(seen.size(), 500u);
}

TEST_F(PublishedCommand, ChangesTheRunWithEveryActingFlag) {
  // With an evaluation: the published 0 makes --eval-interval meaningless, as in Megatron.
  const Words words = changed(published(model_, root_ + "/run"), "--eval-iters", {"5"});
  const std::string base = result(words);
  ASSERT_THAT(base, HasSubstr("eval_batches: 5")) << base;
  const std::map<std::string, Words> other{{"--tokenizer-name-or-path", {root_}},
                                           {"--position-embedding-type", {"none"}},
                                           {"--normalization", {"LayerNorm"}},
                                           {"--data-path", {"other"}},
                                           {"--split", {"90,10,0"}},
                                           {"--eval-iters", {"3"}},
                                           {"--lr-decay-style", {"linear"}},
                                           {"--load", {model_ + "2"}},
                                           {"--save", {root_ + "/other"}}};
  for (const std::string& word : words) {
    if (!word.starts_with("--") || checked_switches.contains(word)) continue;
    const tools::megatron::Flag& flag = *find_flag(word);
    if (tools::megatron::class_of(flag) != tools::megatron::FlagClass::acts) continue;
    const auto found = other.find(word);
    Words values = found == other.end() ? Words{} : found->second;
    // Another number; the learning rate of a tenth, which other flags divide by.
    if (values.empty() && flag.count != "0") values = {flag.name == "lr" ? "1e-5" : "3"};
    if (word == "--initial-loss-scale") values = {"-1"};
    if (word == "--min-lr") values = {"1e-7"};
    if (word == "--lr-warmup-fraction" || word.starts_with("--adam-beta") ||
        word.ends_with("-dropout"))
      values = {"0.5"};
    if (word == "--seq-length") values = {"16"};
    EXPECT_NE(result(changed(words, word, values)), base) << word;
  }
}

TEST_F(PublishedCommand, RecomputesTheLayersThatItsFlagsName) {
  Words words = published(model_, root_ + "/run");
  words.insert(words.end(), {"--recompute-granularity", "full", "--recompute-method", "block",
                             "--recompute-num-layers", "2", "--recompute-in-advance"});
  const std::string found = result(words);
  for (const char* setting : {"train.recompute=[full]", "train.recompute_method=block",
                              "train.recompute_layers=2", "train.recompute_in_advance=true"})
    EXPECT_THAT(found, HasSubstr(setting));
}

TEST_F(PublishedCommand, DropsWhatItsFlagsName) {
  const Words words = changed(published(model_, root_ + "/run"), "--attention-dropout", {"0.1"});
  const std::string found = result(changed(words, "--hidden-dropout", {"0.2"}));
  EXPECT_THAT(found, HasSubstr("train.attention_dropout=0.1"));
  EXPECT_THAT(found, HasSubstr("train.hidden_dropout=0.2"));
}

TEST_F(PublishedCommand, AveragesTheLossAsItsFlagsSay) {
  const Words plain = changed(published(model_, root_ + "/run"), "--micro-batch-size", {"4"});
  const auto with = [&](const Words& more) {
    Words words = plain;
    words.insert(words.end(), more.begin(), more.end());
    return result(words);
  };
  for (const Words& stage : {Words{}, Words{"--stage", "sft", "--is-instruction-dataset"}}) {
    EXPECT_THAT(with(stage), HasSubstr("train.loss_average=micro_batches"));
    EXPECT_THAT(with(stage), HasSubstr("train.micro_batch_rows=4"));
    Words per_token = stage;
    per_token.emplace_back("--calculate-per-token-loss");
    EXPECT_THAT(with(per_token), HasSubstr("train.loss_average=tokens"));
  }
  EXPECT_THAT(with({"--stage", "dpo", "--is-pairwise-dataset"}),
              Not(HasSubstr("train.loss_average")));
}

TEST_F(PublishedCommand, ChecksSwitchesThatDescribeTheModel) {
  Words words = published(model_, root_ + "/run");
  for (const char* flag : {"--add-qkv-bias", "--geglu", "--post-norm", "--squared-relu",
                           "--untie-embeddings-and-output-weights"}) {
    Words more = words;
    more.emplace_back(flag);
    EXPECT_THAT(result(more), HasSubstr(cat(flag, " contradicts config.json"))) << flag;
  }
  std::filesystem::create_directory(root_ + "/llama");
  Json biased = small_config("LlamaForCausalLM");
  put_small_model(root_ + "/llama", biased.set("mlp_bias", true).set("hidden_act", "gelu"));
  // ALiBi in place of rotary positions.
  std::filesystem::create_directory(root_ + "/bloom");
  value_or_throw(write_file_durably(
      root_ + "/bloom/config.json",
      R"({"architectures":["BloomForCausalLM"],"vocab_size":67,"hidden_size":32,"n_layer":5,"n_head":8})"));
  const std::string problems = result(published(root_ + "/llama", root_ + "/run")) +
                               result(published(root_ + "/bloom", root_ + "/run"));
  for (const std::string& flag : checked_switches)
    EXPECT_THAT(problems, HasSubstr(flag + " contradicts config.json")) << flag;
}

TEST_F(PublishedCommand, NamesBothValuesOfAContradiction) {
  const Words words = published(model_, root_ + "/run");
  EXPECT_THAT(result(changed(words, "--hidden-size", {"64"})),
              HasSubstr("--hidden-size 64 contradicts config.json, which says 32"));
  EXPECT_THAT(result(changed(words, "--max-position-embeddings", {"128"})),
              HasSubstr("model_overrides.max_position_embeddings=128"));
  EXPECT_THAT(result(changed(words, "--max-position-embeddings", {"16"})),
              HasSubstr("expected at least --seq-length 32"));
}

TEST_F(PublishedCommand, TakesValuesThatChangeNoShape) {
  const Words words = published(model_, root_ + "/run");
  const auto with = [&](Words more) {
    more.insert(more.begin(), words.begin(), words.end());
    return result(more);
  };
  EXPECT_THAT(result(changed(words, "--rotary-base", {"500000"})),
              HasSubstr("model_overrides.rope_theta=5e+05"));
  EXPECT_THAT(result(changed(words, "--rotary-base", {"0"})),
              HasSubstr("--rotary-base 0: expected a positive number"));
  EXPECT_THAT(with({"--norm-epsilon", "1e-4"}), HasSubstr("model_overrides.rms_norm_eps=1e-04"));
  EXPECT_THAT(with({"--rotary-percent", "0.5"}),
              HasSubstr("--rotary-percent 0.5 contradicts config.json, which says 1: 4 of 4"));
  EXPECT_THAT(with({"--context-parallel-size", "2", "--context-parallel-algo", "ulysses_cp_algo",
                    "--ulysses-degree-in-cp", "2"}),
              testing::Not(HasSubstr("parallel.ulysses_degree")));
}

TEST_F(PublishedCommand, TakesMegatronsDefaultsOfFlagsThatAreLeftOut) {
  const Words words = published(model_, root_ + "/run");
  const std::string found =
      result(changed(changed(words, "--attention-dropout", {}), "--rotary-base", {}));
  EXPECT_THAT(found, HasSubstr("train.attention_dropout=0.1"));
  EXPECT_THAT(found, HasSubstr("train.hidden_dropout=0.0"));
  EXPECT_THAT(found, HasSubstr("model_overrides.rms_norm_eps=1e-05"));
  EXPECT_THAT(found, Not(HasSubstr("model_overrides.rope_theta")));  // 10000 in config.json, too
  Words given = words;
  given.insert(given.end(), {"--norm-epsilon", "1e-6"});
  EXPECT_THAT(result(given), Not(HasSubstr("model_overrides.rms_norm_eps")));
  Json other = small_config("Qwen3ForCausalLM");
  put_config(other.set("rope_theta", 1e6).set("rms_norm_eps", 1e-5));
  const std::string theta = result(changed(words, "--rotary-base", {}));
  EXPECT_THAT(theta, HasSubstr("model_overrides.rope_theta=10000"));
  EXPECT_THAT(theta, Not(HasSubstr("model_overrides.rms_norm_eps")));
}

TEST_F(PublishedCommand, ComparesTheScalingOfPositions) {
  Json config = small_config("Qwen3ForCausalLM");
  const Json scaling(Json::Object{
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32}});
  put_config(config.set("rope_scaling", scaling));
  Words words = published(model_, root_ + "/run");
  words.insert(words.end(), {"--rope-scaling-type", "yarn", "--rope-scaling-factor", "4",
                             "--rope-scaling-original-max-position-embeddings", "32",
                             "--rope-scaling-beta-fast", "32"});
  EXPECT_THAT(result(words), HasSubstr("model=" + model_));
  EXPECT_THAT(result(changed(words, "--rope-scaling-factor", {"8"})),
              HasSubstr("--rope-scaling-factor 8 contradicts config.json, which says 4"));
  words.insert(words.end(), {"--rope-scaling-mscale", "0.7", "--kv-lora-rank", "8"});
  const std::string problems = result(words);
  EXPECT_THAT(problems, HasSubstr("--rope-scaling-mscale 0.7 contradicts config.json, which has "
                                  "no rope_scaling.mscale"));
  EXPECT_THAT(problems, HasSubstr("--kv-lora-rank 8 contradicts config.json, which has no"));
}

TEST_F(PublishedCommand, ActingFlagsOfMindSpeedArriveAsSettings) {
  const std::vector<std::pair<Words, std::string>> cases{
      {{"--recompute-activation-function"}, "train.recompute=[activation]"},
      {{"--recompute-norm"}, "train.recompute=[norm]"},
      {{"--recompute-activations"}, "train.recompute=[attention]"},
      {{"--recompute-granularity", "full", "--recompute-norm"}, "train.recompute=[full, norm]"},
      {{"--recompute-in-bubble"}, "train.recompute_in_advance=true"},
      {{"--o2-optimizer"}, "train.weights=bf16"},
      {{"--o2-gradient"}, "train.gradients=bf16"},
      {{"--optimizer-selection", "fused_ema_adamw"}, "train.ema_decay=0.9999"},
      {{"--ema-decay", "0.9", "--optimizer-selection", "fused_ema_adamw"}, "train.ema_decay=0.9"},
      {{"--profile"}, "profile.enabled=true"},
      {{"--profile-step-start", "3"}, "profile.step_start=3"},
      {{"--profile-step-end", "7"}, "profile.step_end=7"},
      {{"--profile-ranks", "0", "1"}, "profile.ranks=[0, 1]"},
      {{"--profile-level", "level2"}, "profile.level=level2"},
      {{"--profile-with-cpu"}, "profile.with_cpu=true"},
      {{"--profile-with-stack"}, "profile.with_stack=true"},
      {{"--profile-with-memory"}, "profile.with_memory=true"},
      {{"--profile-record-shapes"}, "profile.record_shapes=true"},
      {{"--profile-save-path", "P"}, "profile.save_path=P"}};
  for (const auto& [flags, setting] : cases) {
    Words words = published(model_, root_ + "/run");
    words.insert(words.end(), flags.begin(), flags.end());
    EXPECT_THAT(result(words), HasSubstr("\n" + setting + "\n")) << join(flags, " ");
  }
}

TEST_F(PublishedCommand, ReadsTheTokenizerBesideItsFile) {
  Words words = changed(published(model_, root_ + "/run"), "--tokenizer-name-or-path", {});
  words = changed(words, "--tokenizer-type", {"Llama2Tokenizer"});
  words.insert(words.end(), {"--tokenizer-model", model_ + "/tokenizer.model"});
  EXPECT_THAT(result(words), HasSubstr("model=" + model_));
  words = changed(words, "--tokenizer-model", {root_ + "/none/tokenizer.model"});
  EXPECT_THAT(result(words), HasSubstr("none: no such folder"));
}

TEST_F(PublishedCommand, SchedulesThatIgnoreAMinimumIgnoreIt) {
  const std::string found =
      result(changed(published(model_, root_ + "/run"), "--lr-decay-style", {"constant"}));
  EXPECT_THAT(found, HasSubstr("schedule: constant"));
  EXPECT_THAT(found, Not(HasSubstr("train.min_lr_ratio")));
}

TEST_F(PublishedCommand, RefusesWhatItCannotDo) {
  Words words = published(model_, root_ + "/run");
  words.insert(words.end(),
               {"--expert-model-parallel-size", "2", "--loss-scale", "1", "--nun-layers", "2"});
  const std::string problems = result(words);
  EXPECT_THAT(problems,
              HasSubstr("--expert-model-parallel-size 2: expected 1; mixtures of experts"));
  EXPECT_THAT(problems, HasSubstr("--loss-scale: the loss scale of --fp16 is dynamic"));
  EXPECT_THAT(problems, HasSubstr("did you mean --num-layers?"));
}

TEST_F(PublishedCommand, ScalesTheLossOfFp16) {
  Words words = changed(published(model_, root_ + "/run"), "--bf16", {});
  words.insert(words.end(), {"--fp16", "--min-loss-scale", "2", "--loss-scale-window", "500",
                             "--hysteresis", "3"});
  const std::string run = result(words);
  EXPECT_THAT(run, HasSubstr("dtype: f16")) << run;
  EXPECT_THAT(run, HasSubstr("train.loss_scale.initial=4096"));
  EXPECT_THAT(run, HasSubstr("train.loss_scale.minimum=2"));
  EXPECT_THAT(run, HasSubstr("train.loss_scale.window=500"));
  EXPECT_THAT(run, HasSubstr("train.loss_scale.hysteresis=3"));
}

TEST_F(PublishedCommand, DividesStagesIntoVirtualOnes) {
  // --num-layers counts the places without a layer.
  Words words = changed(published(model_, root_ + "/run"), "--num-layers", {"6"});
  words.insert(words.end(), {"--noop-layers", "5", "--num-layers-per-virtual-pipeline-stage", "1"});
  const std::string run = result(words);
  EXPECT_THAT(run, HasSubstr("parallel.vpp=3")) << run;
  EXPECT_THAT(run, HasSubstr("noop_layers: [5]"));
  EXPECT_THAT(result(changed(words, "--num-layers-per-virtual-pipeline-stage", {"2"})),
              HasSubstr("expected a number that divides num_layers 6 over 2 stages"));
  EXPECT_THAT(result(changed(words, "--num-layers", {"8"})),
              HasSubstr("contradicts config.json, which says 5 beside the 1 of --noop-layers"));
}

TEST(VirtualStages, HaveTheLayersOfConvertedCheckpoints) {
  engine::models::DecoderSpec spec;
  spec.layers = 10;
  const auto expect = [&](tools::convert::LayerSplit split, const std::vector<std::int64_t>& list,
                          int chunks) {
    const std::vector<std::int64_t> noop(split.empty_places.begin(), split.empty_places.end());
    const auto files = value_or_throw(tools::convert::split_layers(spec.layers, split));
    const auto layers =
        value_or_throw(engine::models::stage_layers(spec, split.pipeline, list, noop, chunks));
    for (int rank = 0; rank < split.pipeline; ++rank) {
      std::vector<std::int64_t> converted;
      for (const auto& part : files[static_cast<std::size_t>(rank)])
        for (const std::int64_t layer : part)
          if (layer != engine::checkpoint::empty_layer) converted.push_back(layer);
      EXPECT_EQ(converted, engine::models::stage_of(rank, layers, chunks).layers()) << rank;
    }
  };
  expect({.pipeline = 3}, {}, 1);
  expect({.pipeline = 2, .layer_list = {4, 6}}, {4, 6}, 1);
  expect({.pipeline = 3, .empty_places = {0, 11}}, {}, 1);
  expect({.pipeline = 5, .layers_per_virtual = 1}, {}, 2);
  expect({.pipeline = 2, .layers_per_virtual = 2, .empty_places = {0, 5}}, {}, 3);
  expect({.pipeline = 2, .layers_per_virtual = 1, .empty_places = {11, 0}}, {}, 6);
}

TEST_F(PublishedCommand, DefinesTheModelWithoutAConfig) {
  std::filesystem::create_directory(root_ + "/tokenizer");
  Words words = published(root_ + "/tokenizer", root_ + "/run");
  words = changed(words, "--load", {root_ + "/run"});
  const std::string run = result(words);
  EXPECT_THAT(run, HasSubstr("weights: random")) << run;
  const Json config = value_or_throw(read_json(root_ + "/run/initial_model/config.json"));
  EXPECT_EQ(config.find("model_type")->string(), "qwen3");
  EXPECT_EQ(config.find("intermediate_size")->integer(), 24);
  EXPECT_EQ(config.find("num_key_value_heads")->integer(), 4);
  EXPECT_EQ(config.find("num_hidden_layers")->integer(), 5);
  EXPECT_THAT(result(changed(words, "--hidden-size", {"64"})), HasSubstr("choose another --save"));
  words = changed(changed(words, "--save", {root_ + "/noop"}), "--load", {root_ + "/noop"});
  words.insert(words.end(), {"--noop-layers", "1,3"});
  result(words);
  EXPECT_EQ(value_or_throw(read_json(root_ + "/noop/initial_model/config.json"))
                .find("num_hidden_layers")
                ->integer(),
            3);
}

}  // namespace
}  // namespace troupe::launch::tools::megatron
