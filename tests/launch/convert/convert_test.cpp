#include "launch/tools/convert/convert.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "engine/checkpoint/pickle/torch_file.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using engine::checkpoint::TorchFile;
using testing::ElementsAre;
using testing::HasSubstr;
using Shapes = std::map<std::string, std::vector<std::int64_t>>;

constexpr const char *llama = "LlamaForCausalLM", *qwen2 = "Qwen2ForCausalLM",
                     *qwen3 = "Qwen3ForCausalLM";

struct Folders {
  explicit Folders(const std::string& architecture) : root(scratch_folder()), hf(root + "/hf") {
    std::filesystem::create_directory(hf);
    spec = put_small_model(hf, small_config(architecture));
  }
  std::string root, hf;
  engine::models::DecoderSpec spec;
};

tools::convert::ConvertOptions to_mg(const std::string& from, const std::string& to, int tensor,
                                     int pipeline) {
  tools::convert::ConvertOptions out;
  out.load_dir = from;
  out.save_dir = to;
  out.tensor = tensor;
  out.layers.pipeline = pipeline;
  out.use_mcore = true;
  return out;
}

/// The weights of a checkpoint as a Hugging Face file.
std::string back_to_hf(const std::string& from, const std::string& original) {
  tools::convert::ConvertOptions options;
  options.load_type = "mg";
  options.save_type = "hf";
  options.load_dir = from;
  options.save_dir = original;
  const std::string folder = value_or_throw(tools::convert::convert(options));
  EXPECT_EQ(folder, original + "/mg2hf");
  EXPECT_EQ(content(folder + "/config.json"), content(original + "/config.json"));
  std::string out = content(folder + "/model.safetensors");
  std::filesystem::remove_all(folder);
  return out;
}

/// Tensors of one dict of a file, by name.
Shapes shapes_of(const std::string& path, const std::string& part) {
  const auto file = value_or_throw(TorchFile::open(path));
  const auto* model = file.graph().find(file.root(), part);
  Shapes out;
  if (!model) return out;
  for (std::size_t i = 0; i + 1 < model->items.size(); i += 2) {
    const auto &key = file.graph().at(model->items[i]),
               &value = file.graph().at(model->items[i + 1]);
    if (value.kind == engine::checkpoint::PickleKind::tensor)
      out[key.text] = file.tensor(value).shape;
  }
  return out;
}

std::string rank_path(const std::string& folder, const std::string& rank) {
  return cat(folder, "/iter_0000001/", rank, "/model_optim_rng.pt");
}

class RoundTrip : public testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(RoundTrip, HfTp2Pp2Tp1Pp2HfHasTheSameBytes) {
  const auto& [architecture, mcore] = GetParam();
  const Folders made(architecture);
  tools::convert::ConvertOptions first = to_mg(made.hf, made.root + "/a", 2, 2);
  first.use_mcore = mcore;
  value_or_throw(tools::convert::convert(first));
  tools::convert::ConvertOptions second = to_mg(made.root + "/a", made.root + "/b", 1, 2);
  second.load_type = "mg";
  second.use_mcore = mcore;
  value_or_throw(tools::convert::convert(second));
  EXPECT_EQ(back_to_hf(made.root + "/b", made.hf), content(made.hf + "/model.safetensors"));
  EXPECT_EQ(back_to_hf(made.root + "/a", made.hf), content(made.hf + "/model.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Models, RoundTrip,
                         testing::Values(std::tuple(llama, true), std::tuple(qwen2, true),
                                         std::tuple(qwen3, true), std::tuple(llama, false),
                                         std::tuple(qwen2, false)));

TEST(Convert, FourTensorRanksForFourKeyValueHeads) {
  for (const char* architecture : {llama, qwen3}) {
    const Folders made(architecture);
    value_or_throw(tools::convert::convert(to_mg(made.hf, made.root + "/a", 4, 1)));
    EXPECT_EQ(back_to_hf(made.root + "/a", made.hf), content(made.hf + "/model.safetensors"));
  }
}

TEST(Convert, McoreToLegacyAndBack) {
  const Folders made(qwen2);
  value_or_throw(tools::convert::convert(to_mg(made.hf, made.root + "/a", 2, 1)));
  tools::convert::ConvertOptions second = to_mg(made.root + "/a", made.root + "/b", 1, 2);
  second.load_type = "mg";
  second.save_to_legacy = true;
  value_or_throw(tools::convert::convert(second));
  tools::convert::ConvertOptions third = to_mg(made.root + "/b", made.root + "/c", 2, 1);
  third.load_type = "mg";
  third.load_from_legacy = true;
  value_or_throw(tools::convert::convert(third));
  EXPECT_EQ(content(rank_path(made.root + "/c", "mp_rank_01")),
            content(rank_path(made.root + "/a", "mp_rank_01")));
}

// reference: the shapes of Megatron core's GPTModel with tp 2: qkv (8 + 2 * 4) * 4 / 2 rows.
TEST(Convert, NamesAndShapesAreMegatrons) {
  const Folders made(qwen3);
  value_or_throw(tools::convert::convert(to_mg(made.hf, made.root + "/a", 2, 2)));
  EXPECT_EQ(content(made.root + "/a/latest_checkpointed_iteration.txt"), "1");
  const Shapes first = shapes_of(rank_path(made.root + "/a", "mp_rank_01_000"), "model");
  EXPECT_THAT(first.at("embedding.word_embeddings.weight"), ElementsAre(34, 32));
  EXPECT_THAT(first.at("decoder.layers.2.self_attention.linear_qkv.weight"), ElementsAre(32, 32));
  EXPECT_THAT(first.at("decoder.layers.0.self_attention.q_layernorm.weight"), ElementsAre(4));
  EXPECT_THAT(first.at("decoder.layers.0.self_attention.linear_proj.weight"), ElementsAre(32, 16));
  EXPECT_THAT(first.at("decoder.layers.0.mlp.linear_fc1.weight"), ElementsAre(24, 32));
  EXPECT_THAT(first.at("decoder.layers.0.mlp.linear_fc2.weight"), ElementsAre(32, 12));
  EXPECT_EQ(first.size(), 1u + 3 * 8);
  const Shapes last = shapes_of(rank_path(made.root + "/a", "mp_rank_00_001"), "model");
  EXPECT_THAT(last.at("output_layer.weight"), ElementsAre(34, 32)) << "a copy of the tied table";
  EXPECT_THAT(last.at("decoder.final_layernorm.weight"), ElementsAre(32));
  EXPECT_EQ(last.size(), 2u + 2 * 8) << "the layers 0 and 1 of the stage";
}

// The rows of query group g of the checkpoint: its queries, its key, its value.
TEST(Convert, QueryGroupsAreInterleaved) {
  const Folders made(llama);
  value_or_throw(tools::convert::convert(to_mg(made.hf, made.root + "/a", 2, 1)));
  const auto hf =
      value_or_throw(engine::checkpoint::SafetensorsFile::open(made.hf + "/model.safetensors"));
  const auto file = value_or_throw(TorchFile::open(rank_path(made.root + "/a", "mp_rank_01")));
  const auto* model = file.graph().find(file.root(), "model");
  const auto* qkv = file.graph().find(*model, "decoder.layers.3.self_attention.linear_qkv.weight");
  std::vector<std::byte> buffer;
  const auto bytes = value_or_throw(file.bytes(file.tensor(*qkv), buffer));
  const auto row = [&](const char* module, std::size_t index) {
    const auto* tensor = hf.find(cat("model.layers.3.self_attn.", module, ".weight"));
    const auto all = hf.bytes(*tensor);
    return std::string(reinterpret_cast<const char*>(all.data()) + index * 64, 64);
  };
  const auto stored = [&](std::size_t index) {
    return std::string(reinterpret_cast<const char*>(bytes.data()) + index * 64, 64);
  };
  // Rank 1 has the groups 2 and 3; a group has 8 rows of queries, 4 of keys, 4 of values.
  EXPECT_EQ(stored(0), row("q_proj", 16));
  EXPECT_EQ(stored(8), row("k_proj", 8));
  EXPECT_EQ(stored(12), row("v_proj", 8));
  EXPECT_EQ(stored(16 + 7), row("q_proj", 31));
  EXPECT_EQ(stored(16 + 15), row("v_proj", 15));
}

TEST(Convert, VirtualRanksListsAndEmptyLayers) {
  const Folders made(llama);
  tools::convert::ConvertOptions virtual_ranks = to_mg(made.hf, made.root + "/a", 1, 2);
  virtual_ranks.empty_places = "5";
  virtual_ranks.layers.layers_per_virtual = 1;
  value_or_throw(tools::convert::convert(virtual_ranks));
  const std::string stage = rank_path(made.root + "/a", "mp_rank_00_001");
  EXPECT_EQ(shapes_of(stage, "model0").count("decoder.layers.0.mlp.linear_fc2.weight"), 1u);
  EXPECT_EQ(shapes_of(stage, "model2").size(), 2u) << "an empty layer, then norm and output";
  EXPECT_EQ(back_to_hf(made.root + "/a", made.hf), content(made.hf + "/model.safetensors"));
  tools::convert::ConvertOptions listed = to_mg(made.hf, made.root + "/b", 1, 3);
  listed.layer_list = "1, 3 1";
  value_or_throw(tools::convert::convert(listed));
  EXPECT_EQ(shapes_of(rank_path(made.root + "/b", "mp_rank_00_001"), "model").size(), 3u * 6);
  EXPECT_EQ(back_to_hf(made.root + "/b", made.hf), content(made.hf + "/model.safetensors"));
}

TEST(Convert, OtherTypesAreRounded) {
  const Folders made(llama);
  tools::convert::ConvertOptions wide = to_mg(made.hf, made.root + "/a", 2, 1);
  wide.params_dtype = "fp32";
  value_or_throw(tools::convert::convert(wide));
  tools::convert::ConvertOptions back;
  back.load_type = "mg";
  back.save_type = "hf";
  back.load_dir = made.root + "/a";
  back.save_dir = made.hf;
  back.params_dtype = "bf16";
  const std::string folder = value_or_throw(tools::convert::convert(back));
  EXPECT_EQ(content(folder + "/model.safetensors"), content(made.hf + "/model.safetensors"));
}

TEST(Convert, ContradictionsAreNamed) {
  const Folders made(qwen3);
  const auto what = [&](const tools::convert::ConvertOptions& options) {
    const auto done = tools::convert::convert(options);
    return done ? std::string("converted") : done.error().what;
  };
  const std::string to = made.root + "/a";
  EXPECT_THAT(what(to_mg(made.hf, to, 3, 1)), HasSubstr("4 key/value heads"));
  EXPECT_THAT(what(to_mg(made.hf, to, 1, 6)), HasSubstr("5 layers for 6 pipeline ranks"));
  tools::convert::ConvertOptions options = to_mg(made.hf, to, 1, 2);
  options.layer_list = "2,2";
  EXPECT_THAT(what(options), HasSubstr("2 positive numbers with the sum 5"));
  options = to_mg(made.hf, to, 1, 1);
  options.use_mcore = false;
  EXPECT_THAT(what(options), HasSubstr("add --use-mcore-models"));
  options.add_qkv_bias = true;
  EXPECT_THAT(what(options), HasSubstr("no biases of queries"));
  options = to_mg(made.hf, to, 1, 1);
  options.add_dense_bias = true;
  EXPECT_THAT(what(options), HasSubstr("--add-dense-bias: the model"));
  options = to_mg(made.hf, to, 1, 1);
  options.post_norm = true;
  EXPECT_THAT(what(options), HasSubstr("no norms behind attention and MLP"));
  options = to_mg(made.hf, to, 1, 1);
  options.num_layers = 6;
  EXPECT_THAT(what(options), HasSubstr("has 5 layers"));
  EXPECT_FALSE(std::filesystem::exists(to));
  options = to_mg(to, made.hf, 1, 1);
  options.load_type = "mg";
  options.save_type = "hf";
  EXPECT_THAT(what(options), HasSubstr("latest_checkpointed_iteration.txt"));
}

TEST(Convert, ShardedFormatsAreRecognized) {
  const Folders made(llama);
  const std::string from = made.root + "/a";
  std::filesystem::create_directories(from + "/iter_0000100");
  value_or_throw(write_file_durably(from + "/latest_checkpointed_iteration.txt", "100\n"));
  value_or_throw(write_file_durably(from + "/iter_0000100/metadata.json", "{}"));
  tools::convert::ConvertOptions options = to_mg(from, made.hf, 1, 1);
  options.load_type = "mg";
  options.save_type = "hf";
  EXPECT_THAT(tools::convert::convert(options).error().what,
              HasSubstr("--ckpt-convert-format torch"));
}

TEST(Convert, TheCommandKeepsLogProbabilities) {
  const std::string root = scratch_folder(), hf = root + "/hf";
  std::filesystem::copy(data("models/stories260k/hf"), hf);
  const std::string flags = " convert --use-mcore-models --model-type GPT --tokenizer-model x ";
  const ProgramOutput there = run_program(
      cat(flags, "--load-model-type hf --save-model-type mg --load-dir ", hf, " --save-dir ", root,
          "/mg --target-tensor-parallel-size 2 "
          "--target-pipeline-parallel-size 2 --num-layer-list 2, 3 "
          "--model-type-hf llama2 --params-dtype fp32"));
  ASSERT_EQ(there.code, 0) << there.err;
  const ProgramOutput back = run_program(cat(
      flags, "--load-model-type mg --save-model-type hf --load-dir ", root, "/mg --save-dir ", hf));
  ASSERT_EQ(back.code, 0) << back.err;
  EXPECT_EQ(back.out, hf + "/mg2hf\n");
  const std::string input = "{\"text\": \"Once upon a time there was a dog\"}\n";
  const ProgramOutput before = run_program("logprobs --model " + hf, input),
                      after = run_program(cat("logprobs --model ", hf, "/mg2hf"), input);
  EXPECT_EQ(before.code, 0) << before.err;
  EXPECT_EQ(after.out, before.out);
}

// Debian's python3-torch, where it is installed (cmake/install_packages.sh with-peers).
TEST(Convert, TorchOpensTheFiles) {
  if (!std::filesystem::exists("/usr/lib/python3/dist-packages/torch"))
    GTEST_SKIP() << "python3-torch is not installed";
  const Folders made(qwen2);
  value_or_throw(tools::convert::convert(to_mg(made.hf, made.root + "/a", 2, 2)));
  tools::convert::ConvertOptions legacy = to_mg(made.hf, made.root + "/b", 2, 1);
  legacy.save_to_legacy = true;
  value_or_throw(tools::convert::convert(legacy));
  const std::string program =
      "import torch, glob, argparse\n"
      "for p in glob.glob('*/iter_0000001/*/model_optim_rng.pt'):\n"
      "  x = torch.load(p, weights_only=True)\n"
      "  assert x['checkpoint_version'] == 3 and x['iteration'] == 1 and 'args' not in x\n"
      "  assert x['architecture']['num_query_groups'] == 4\n"
      "e = torch.load('b/iter_0000001/mp_rank_01/model_optim_rng.pt', weights_only=True)['model']\n"
      "e = e['language_model']\n"
      "assert e['embedding']['word_embeddings']['weight'].shape == (34, 32)\n"
      "assert e['encoder']['layers.4.self_attention.query_key_value.bias'].shape == (32,)\n"
      "assert e['output_layer']['weight'].dtype == torch.bfloat16\n"
      "for p in glob.glob('a/iter_0000001/*/model_optim_rng.pt'):\n"
      "  x = torch.load(p, weights_only=True)\n"
      "  x['args'] = argparse.Namespace(num_layers=5, params_dtype=torch.bfloat16)\n"
      "  x['rng_state'] = [{'torch_rng_state': torch.get_rng_state()}]\n"
      "  torch.save(x, p)\n";
  value_or_throw(write_file_durably(made.root + "/program.py", program));
  EXPECT_EQ(std::system(cat("cd ", made.root, " && /usr/bin/python3 program.py").c_str()), 0);
  EXPECT_EQ(back_to_hf(made.root + "/a", made.hf), content(made.hf + "/model.safetensors"))
      << "files with a Namespace and a random state";
}

}  // namespace
}  // namespace troupe::launch
