// Families without a golden file of their own: a golden Llama rewritten by hand into their layout
// is the same model bit by bit, and what a Llama has not is compared with a decoder in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/models/packed_weights.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/golden/layouts.h"
#include "tests/support/decoder_oracle.h"
#include "tests/support/golden.h"
#include "tests/support/on_ranks.h"

namespace troupe::engine::checkpoint::dense_layouts {
namespace {

using test::FileLayout;
using test::StoredModel;

const std::vector<std::int32_t> tokens = {3, 17, 5, 0, 29, 8, 8, 30, 11};

const std::vector<std::string> queries_keys_values = {"self_attn.q_proj", "self_attn.k_proj",
                                                      "self_attn.v_proj"};
const FileLayout baichuan{{}, {{"self_attn.W_pack", queries_keys_values}}};
const FileLayout qwen{{{"model.layers", "transformer.h"},
                       {"model.embed_tokens", "transformer.wte"},
                       {"model.norm", "transformer.ln_f"},
                       {"input_layernorm", "ln_1"},
                       {"post_attention_layernorm", "ln_2"},
                       {"self_attn.o_proj", "attn.c_proj"},
                       {"mlp.gate_proj", "mlp.w2"},
                       {"mlp.up_proj", "mlp.w1"},
                       {"mlp.down_proj", "mlp.c_proj"}},
                      {{"attn.c_attn", queries_keys_values}}};
const FileLayout chatglm{{{"model.layers", "transformer.encoder.layers"},
                          {"model.embed_tokens", "transformer.embedding.word_embeddings"},
                          {"model.norm", "transformer.encoder.final_layernorm"},
                          {"lm_head", "transformer.output_layer"},
                          {"self_attn.o_proj", "self_attention.dense"},
                          {"mlp.down_proj", "mlp.dense_4h_to_h"}},
                         {{"self_attention.query_key_value", queries_keys_values},
                          {"mlp.dense_h_to_4h", {"mlp.gate_proj", "mlp.up_proj"}}}};

ops::Layout one_sequence() {
  ops::Layout layout;
  layout.offsets = {0, static_cast<std::int32_t>(tokens.size())};
  layout.positions.resize(tokens.size());
  std::iota(layout.positions.begin(), layout.positions.end(), 0);
  return layout;
}

std::vector<float> logits_of(models::Decoder& model) {
  const ops::PreparedLayout layout = model.device().prepare(one_sequence());
  nn::Saved nothing = nn::Saved::nothing();
  const Tensor hidden = model.forward(tokens, {model.device(), layout}, nothing);
  return model.head().gather_logits(model.head().logits(hidden, ops::Precision::f32));
}

void expect_saved_as_stored(const std::string& folder, const models::Decoder& model) {
  const Scratch saved;
  value_or_throw(save_parameters(saved.path(), model.parameters(),
                                 {.source = folder, .tied = model.spec().tied}));
  EXPECT_EQ(slurp(saved / "model.safetensors"), slurp(folder + "/model.safetensors"));
}

/// A golden Llama in another layout, with these changes of its config.json.
struct Rewriting {
  const char *golden, *architecture;
  FileLayout layout;
  const char* changes;
  bool fused_bias = false;  ///< the fused projection has a bias, here of zeros
};

class RewrittenLlama : public testing::TestWithParam<Rewriting> {};

TEST_P(RewrittenLlama, IsTheSameModelAndIsSavedAsItWasStored) {
  const Rewriting& how = GetParam();
  SKIP_WITHOUT_GOLDEN(cat("models/", how.golden, "/config.json"));
  const std::string source = cat(test::golden_folder(), "/models/", how.golden);
  StoredModel llama = test::read_model(source);
  for (const auto& [name, matrix] : test::read_model(source))
    if (how.fused_bias && name.find("_proj.weight") != name.npos && name.find(".o_") == name.npos &&
        name.find("self_attn") != name.npos)
      llama[test::replaced(name, ".weight", ".bias")] = {
          {matrix.shape[0]}, std::vector<float>(static_cast<std::size_t>(matrix.shape[0]))};
  Json config = value_or_throw(read_json(source + "/config.json"));
  config.set("architectures", Json::Array{how.architecture});
  const Json changes = value_or_throw(parse_json(how.changes, "changes"));
  for (const auto& [key, value] : changes.object()) config.set(key, value);
  const Scratch folder;
  test::write_model(folder.path(), test::rewritten(llama, how.layout), config.dump(2));
  const auto device = ops::make_cpu_device({.threads = 1});
  const auto model = value_or_throw(load_decoder(*device, folder.path(), false));
  const auto original = value_or_throw(load_decoder(*device, source, false));
  EXPECT_EQ(model->spec().architecture, how.architecture);
  EXPECT_EQ(logits_of(*model), logits_of(*original));
  expect_saved_as_stored(folder.path(), *model);
}

const char* const qwen_config =
    R"({"intermediate_size":176,"kv_channels":8,"layer_norm_epsilon":1e-6,"seq_length":128})";
INSTANTIATE_TEST_SUITE_P(
    Families, RewrittenLlama,
    testing::Values(
        Rewriting{"internlm-style-llama-mha", "InternLMForCausalLM", {}, R"({"bias":false})"},
        Rewriting{"internlm-style-llama-mha",
                  "InternLMForCausalLM",
                  {},
                  R"({"bias":false,"rotary":{"base":10000,"type":"dynamic"}})"},
        Rewriting{
            "llama-bias-headdim", "InternLM3ForCausalLM", {}, R"({"bias":true,"qkv_bias":true})"},
        Rewriting{"llama-bias-headdim",
                  "SeedOssForCausalLM",
                  {},
                  R"({"attention_out_bias":true,"residual_dropout":0.1})"},
        Rewriting{"llama", "AquilaForCausalLM", {}, "{}"},
        Rewriting{"llama", "AquilaModel", {}, "{}"},
        Rewriting{"internlm-style-llama-mha", "QWenLMHeadModel", qwen, qwen_config, true},
        Rewriting{"internlm-style-llama-mha", "BaiChuanForCausalLM", baichuan, "{}"},
        Rewriting{"internlm-style-llama-mha", "BaichuanForCausalLM", baichuan, "{}"}));

/// A small random model of a family, as files and in float64.
struct Reference {
  const char* name;
  FileLayout layout;
  const char* config;
  bool bias;  ///< of queries, keys and values
  test::DecoderOracle oracle;
};
void PrintTo(const Reference& reference, std::ostream* out) {
  *out << reference.name;
}

StoredModel random_llama(const Reference& of) {
  constexpr std::int64_t vocabulary = 32, width = 16, inner = 20;
  const test::DecoderOracle& oracle = of.oracle;
  const std::int64_t q = oracle.heads * oracle.head_size, kv = oracle.kv_heads * oracle.head_size;
  constexpr std::int64_t query_rank = 10;
  StoredModel model;
  std::uint64_t stream = 0;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, double middle) {
    ++stream;
    auto& matrix = model[name];
    matrix.shape = std::move(shape);
    const auto count = std::accumulate(matrix.shape.begin(), matrix.shape.end(), std::int64_t{1},
                                       std::multiplies<>());
    for (std::int64_t i = 0; i < count; ++i)
      matrix.values.push_back(static_cast<float>(
          middle + 0.6 * (uniform(7, stream, static_cast<std::uint64_t>(i)) - 0.5)));
  };
  add("model.embed_tokens.weight", {vocabulary, width}, 0);
  for (int i = 0; i < oracle.layers; ++i) {
    const std::string layer = cat("model.layers.", i, ".");
    add(layer + "input_layernorm.weight", {width}, 1);
    add(layer + "post_attention_layernorm.weight", {width}, 1);
    const std::string own = layer + "self_attn.";
    if (oracle.key_rank > 0) {
      const std::int64_t value = oracle.value_size;
      add(own + "q_a_proj.weight", {query_rank, width}, 0);
      add(own + "q_a_layernorm.weight", {query_rank}, 1);
      add(own + "q_b_proj.weight", {q, query_rank}, 0);
      add(own + "kv_a_proj_with_mqa.weight", {oracle.key_rank + oracle.rotary_dim, width}, 0);
      add(own + "kv_a_layernorm.weight", {oracle.key_rank}, 1);
      add(own + "kv_b_proj.weight",
          {q + oracle.heads * (value - oracle.rotary_dim), oracle.key_rank}, 0);
      add(own + "o_proj.weight", {width, oracle.heads * value}, 0);
    } else {
      for (const auto& [name, rows] : {std::pair("q", q), std::pair("k", kv), std::pair("v", kv)}) {
        add(cat(own, name, "_proj.weight"), {rows, width}, 0);
        if (of.bias) add(cat(own, name, "_proj.bias"), {rows}, 0);
      }
      add(own + "o_proj.weight", {width, q}, 0);
    }
    add(layer + "mlp.gate_proj.weight", {inner, width}, 0);
    add(layer + "mlp.up_proj.weight", {inner, width}, 0);
    add(layer + "mlp.down_proj.weight", {width, inner}, 0);
  }
  add("model.norm.weight", {width}, 1);
  add("lm_head.weight", {vocabulary, width}, 0);
  return model;
}

class ReferenceModel : public testing::TestWithParam<Reference> {
 protected:
  void SetUp() override {
    const StoredModel llama = random_llama(GetParam());
    for (const auto& [name, matrix] : llama)
      oracle_.weights[name] = {matrix.shape.size() == 1 ? 1 : matrix.shape[0],
                               matrix.shape.back(),
                               {matrix.values.begin(), matrix.values.end()}};
    test::write_model(folder_.path(), test::rewritten(llama, GetParam().layout), GetParam().config);
  }
  std::unique_ptr<models::Decoder> load(bool with_gradients) {
    return value_or_throw(load_decoder(*device_, folder_.path(), with_gradients));
  }
  void expect_logits(const std::vector<float>& found) {
    const auto wanted = oracle_.logits(tokens);
    ASSERT_EQ(found.size(), wanted.size() * wanted[0].size());
    double largest = 0;
    for (const auto& row : wanted)
      for (const double z : row) largest = std::max(largest, std::abs(z));
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(static_cast<double>(found[i]), wanted[i / wanted[0].size()][i % wanted[0].size()],
                  2e-5 * largest);
  }
  /// The gradient of the oracle's loss, by central differences.
  double finite_difference(const std::string& name, std::size_t element) {
    double& value = oracle_.weights.at(name).values[element];
    const double before = value, step = 1e-5;
    value = before + step;
    const double above = oracle_.loss(tokens);
    value = before - step;
    const double below = oracle_.loss(tokens);
    value = before;
    return (above - below) / (2 * step);
  }

  Scratch folder_;
  test::DecoderOracle oracle_ = GetParam().oracle;
  std::unique_ptr<ops::Device> device_ = ops::make_cpu_device({.threads = 1});
};

TEST_P(ReferenceModel, LogitsEqualTheFloat64Decoder) {
  const auto model = load(false);
  expect_logits(logits_of(*model));
  expect_saved_as_stored(folder_.path(), *model);
}

TEST_P(ReferenceModel, LogitsOfTwoRanksEqualTheFloat64Decoder) {
  std::vector<float> found;
  test::on_ranks(2, [&](parallel::Communicator& own) {
    const auto device = ops::make_cpu_device({.threads = 1});
    const auto model = value_or_throw(load_decoder(*device, folder_.path(), false, &own));
    const auto logits = logits_of(*model);
    if (own.rank() == 0) found = logits;
  });
  expect_logits(found);
}

TEST_P(ReferenceModel, GradientsEqualFiniteDifferences) {
  const auto model = load(true);
  const ops::PreparedLayout layout = device_->prepare(one_sequence());
  for (const bool together : {false, true}) {
    device_->fill(model->parameters().grads(), 0);
    nn::Saved saved;
    const nn::ForwardContext pass{*device_, layout};
    const Tensor hidden = model->forward(tokens, pass, saved);
    std::vector<std::int32_t> targets(tokens.begin() + 1, tokens.end());
    targets.push_back(ops::no_target);
    const std::vector<float> up(tokens.size(), -1.0F / static_cast<float>(tokens.size() - 1));
    const Tensor dlogp = ops::from_host(*device_, {static_cast<std::int64_t>(up.size())}, up);
    const nn::Head& head = model->head();
    Tensor dhidden;
    if (together) {
      dhidden = head.forward_backward(hidden, {targets}, dlogp, {}, false).dhidden;
    } else {
      const auto scores = head.forward(hidden, {targets}, false, true);
      dhidden = head.backward(hidden, {targets}, scores, dlogp, {});
    }
    model->backward(tokens, dhidden, pass, saved);
    model->parameters().complete_gradients();
    std::vector<std::string> names = {
        "lm_head.weight", "model.norm.weight", "model.embed_tokens.weight",
        "model.layers.0.mlp.up_proj.weight", "model.layers.1.self_attn.o_proj.weight"};
    for (const char* module : {"q_a_proj", "q_a_layernorm", "q_b_proj", "kv_a_proj_with_mqa",
                               "kv_a_layernorm", "kv_b_proj"})
      if (oracle_.key_rank > 0)
        names.push_back(cat("model.layers.0.self_attn.", module, ".weight"));
    for (const std::string& name : names) {
      const auto grad = ops::to_host(*device_, model->parameters().at(name).grad);
      double largest = 0;
      for (const float g : grad) largest = std::max(largest, std::abs(static_cast<double>(g)));
      for (std::size_t i = 1; i<grad.size(); i += grad.size()> 13 ? 13 : 1)
        ASSERT_NEAR(static_cast<double>(grad[i]), finite_difference(name, i), 2e-5 * largest)
            << name << " " << i;
    }
  }
}

TEST_P(ReferenceModel, PackedWeightsGiveTheLogitsOfTheOthers) {
  const auto model = load(false);
  const ops::PreparedLayout layout = device_->prepare(one_sequence());
  nn::Saved nothing = nn::Saved::nothing();
  const Tensor hidden = model->forward(tokens, {*device_, layout}, nothing);
  models::PackedWeights packed(*model, ops::Precision::bf16);
  packed.refresh();
  const auto plain = ops::to_host(*device_, model->head().logits(hidden, ops::Precision::bf16));
  const auto fast =
      ops::to_host(*device_, model->head().logits(hidden, ops::Precision::bf16, true));
  for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(plain[i], fast[i], 1e-5F);
}

const char* const baichuan_13b =
    R"({"architectures":["BaichuanForCausalLM"],"vocab_size":32,"hidden_size":16,
  "intermediate_size":20,"num_hidden_layers":2,"num_attention_heads":4,"model_max_length":64})";
const char* const baichuan2 =
    R"({"architectures":["BaichuanForCausalLM"],"vocab_size":32,"hidden_size":16,
  "intermediate_size":20,"num_hidden_layers":2,"num_attention_heads":4,
  "max_position_embeddings":64,"model_max_length":64,"z_loss_weight":0})";
const char* const chatglm3 =
    R"({"architectures":["ChatGLMModel"],"padded_vocab_size":32,"hidden_size":16,
  "ffn_hidden_size":20,"num_layers":2,"num_attention_heads":4,"kv_channels":8,"seq_length":64,
  "multi_query_attention":true,"multi_query_group_num":2,"add_qkv_bias":true,"rope_ratio":5,
  "layernorm_epsilon":1e-5,"rmsnorm":true,"original_rope":true,"add_bias_linear":false})";
const char* const minicpm =
    R"({"architectures":["MiniCPMForCausalLM"],"vocab_size":32,"hidden_size":16,
  "intermediate_size":20,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
  "max_position_embeddings":64,"scale_emb":12,"scale_depth":1.4,"dim_model_base":4,
  "tie_word_embeddings":false})";

// Longer than the original length: the long factors and their attention factor.
const char* const minicpm3 =
    R"({"architectures":["MiniCPM3ForCausalLM"],"vocab_size":32,"hidden_size":16,
  "intermediate_size":20,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":4,
  "q_lora_rank":10,"kv_lora_rank":6,"qk_nope_head_dim":6,"qk_rope_head_dim":4,
  "max_position_embeddings":64,"scale_emb":12,"scale_depth":1.4,"dim_model_base":4,
  "rms_norm_eps":1e-5,"rope_scaling":{"type":"longrope","short_factor":[1.5,1],
  "long_factor":[1.25,3],"original_max_position_embeddings":8},"tie_word_embeddings":false})";

INSTANTIATE_TEST_SUITE_P(
    Families, ReferenceModel,
    testing::Values(
        Reference{"Baichuan13B",
                  baichuan,
                  baichuan_13b,
                  false,
                  {.layers = 2, .heads = 4, .kv_heads = 4, .head_size = 4, .alibi = true}},
        Reference{"Baichuan2",
                  baichuan,
                  baichuan2,
                  false,
                  {.layers = 2,
                   .heads = 4,
                   .kv_heads = 4,
                   .head_size = 4,
                   .rotary_dim = 4,
                   .normalized_head = true}},
        Reference{"ChatGLM3",
                  chatglm,
                  chatglm3,
                  true,
                  {.layers = 2,
                   .heads = 4,
                   .kv_heads = 2,
                   .head_size = 8,
                   .eps = 1e-5,
                   .theta = 50000,
                   .rotary_dim = 4,
                   .interleaved = true}},
        Reference{"MiniCPM",
                  {},
                  minicpm,
                  false,
                  {.layers = 2,
                   .heads = 4,
                   .kv_heads = 2,
                   .head_size = 4,
                   .embedding_multiplier = 12,
                   .residual_multiplier = 1.4 / std::sqrt(2.0),
                   .logit_scale = 0.25,
                   .rotary_dim = 4}},
        Reference{"MiniCPM3",
                  {},
                  minicpm3,
                  false,
                  {.layers = 2,
                   .heads = 4,
                   .kv_heads = 4,
                   .head_size = 10,
                   .eps = 1e-5,
                   .embedding_multiplier = 12,
                   .residual_multiplier = 1.4 / std::sqrt(2.0),
                   .logit_scale = 0.25,
                   .rotary_dim = 4,
                   .stretch = {1.25, 3},
                   .rotary_factor = std::sqrt(1 + std::log(8.0) / std::log(8.0)),
                   .key_rank = 6,
                   .value_size = 4}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace troupe::engine::checkpoint::dense_layouts
