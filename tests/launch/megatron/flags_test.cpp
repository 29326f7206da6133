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
    return cat(run->save, '\n', join(sources.sets, "\n"), '\n', recipes::to_yaml(resolved->config));
  }

  std::string root_ = scratch_folder(), model_ = root_ + "/hf";
};

TEST(Flags, HaveTheClassesOfTheRequirement) {
  std::set<std::string> already_so, other;
  for (const std::string& word : published("M", "S")) {
    if (!word.starts_with("--")) continue;
    const tools::megatron::Flag* flag = find_flag(word);
    ASSERT_NE(flag, nullptr) << word;
    if (tools::megatron::class_of(*flag) == tools::megatron::FlagClass::already_so)
      already_so.insert(word);
    if (tools::megatron::class_of(*flag) == tools::megatron::FlagClass::refused) other.insert(word);
  }
  EXPECT_EQ(already_so, (std::set<std::string>{
                            "--attention-softmax-in-fp32", "--distributed-backend",
                            "--no-gradient-accumulation-fusion", "--no-masked-softmax-fusion",
                            "--no-shared-storage", "--norm-topk-prob", "--spec", "--use-flash-attn",
                            "--use-fused-rmsnorm", "--use-fused-rotary-pos-emb",
                            "--use-fused-swiglu", "--use-mcore-models"}));
  EXPECT_TRUE(other.empty()) << *other.begin();
}

TEST(Flags, AreListedOnceAndSayWhyTheyAreRefused) {
  std::set<std::string> seen;
  const Said said = run_program("flags --json");
  ASSERT_EQ(said.code, 0) << said.err;
  for (const Json& line : json_lines(said.out)) {
    if (line.is_null()) continue;
    const std::string flag = line.find("flag")->string();
    EXPECT_TRUE(seen.insert(flag).second) << flag;
    const bool why = !line.find("remark")->string().empty();
    EXPECT_TRUE(why || line.find("class")->string() == "acts") << flag;
  }
  EXPECT_GT(seen.size(), 230u);
}

TEST_F(PublishedCommand, ChangesTheRunWithEveryActingFlag) {
  // With an evaluation: the published 0 makes --eval-interval meaningless, as in Megatron.
  const Words words = changed(published(model_, root_ + "/run"), "--eval-iters", {"5"});
  const std::string base = result(words);
  ASSERT_THAT(base, HasSubstr("eval_batches: 5")) << base;
  const std::map<std::string, Words> other{{"--tokenizer-name-or-path", {root_}},
                                           {"--tokenizer-type", {"Llama2Tokenizer"}},
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
              HasSubstr("expected --seq-length 32 to 64"));
}

TEST_F(PublishedCommand, RefusesWhatItCannotDo) {
  Words words = published(model_, root_ + "/run");
  words.insert(words.end(),
               {"--expert-model-parallel-size", "2", "--loss-scale", "1", "--nun-layers", "2"});
  const std::string problems = result(words);
  EXPECT_THAT(problems, HasSubstr("--expert-model-parallel-size: mixtures of experts"));
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
