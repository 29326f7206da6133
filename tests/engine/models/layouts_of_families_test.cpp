// Families whose config.json has several forms: what each makes of the layers, norms and heads, and
// under which names their files have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/base/text/text.h"
#include "engine/models/families.h"
#include "tests/engine/models/family_config.h"

namespace troupe::engine::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr std::string_view small_config = R"({"vocab_size":16,"hidden_size":32,
  "intermediate_size":24,"num_hidden_layers":4,"num_attention_heads":4,
  "max_position_embeddings":64})";

Result<DecoderSpec> read_form(std::string_view architecture, std::string_view fields) {
  return read_changed(small_config, architecture, fields);
}

DecoderSpec form(std::string_view architecture, std::string_view fields = "{}") {
  return value_or_throw(read_form(architecture, fields));
}

std::string problem(std::string_view architecture, std::string_view fields) {
  const auto spec = read_form(architecture, fields);
  return spec ? "accepted" : spec.error().what;
}

std::vector<std::string> names(const DecoderSpec& spec) {
  std::vector<std::string> out;
  for (const auto& tensor : stored_tensors(spec)) out.push_back(tensor.name);
  return out;
}

// Windows of the layers; -1: no rotary embedding.
std::vector<int> layers_of(const DecoderSpec& spec) {
  std::vector<int> out;
  for (std::int64_t i = 0; i < spec.layers; ++i)
    out.push_back(spec.layer_at(i).rotary < 0 ? -1 : spec.layer_at(i).window);
  return out;
}

TEST(FalconForms, OfThePublishedModels) {
  // 7B: one norm, one key and value head. 40B: two norms and groups. 11B: groups and one norm.
  const DecoderSpec of_7b = form("FalconForCausalLM", R"({"multi_query":true,"num_kv_heads":4})");
  EXPECT_EQ(of_7b.kv_heads, 1);
  EXPECT_EQ(of_7b.inner, 4 * 32);
  EXPECT_EQ(of_7b.norm_placement, NormPlacement::shared);
  EXPECT_THAT(names(of_7b), IsSupersetOf({"transformer.h.0.input_layernorm.bias",
                                          "transformer.h.3.self_attention.query_key_value.weight",
                                          "transformer.h.0.mlp.dense_h_to_4h.weight"}));
  const DecoderSpec of_40b =
      form("FalconForCausalLM", R"({"new_decoder_architecture":true,"n_head_kv":2})");
  EXPECT_EQ(of_40b.kv_heads, 2);
  EXPECT_EQ(of_40b.norm_placement, NormPlacement::parallel);
  EXPECT_THAT(names(of_40b),
              IsSupersetOf({"transformer.h.1.ln_attn.weight", "transformer.h.1.ln_mlp.bias",
                            "transformer.ln_f.bias"}));
  const DecoderSpec of_11b = form("FalconForCausalLM", R"({"new_decoder_architecture":true,
    "num_kv_heads":2,"num_ln_in_parallel_attn":1,"ffn_hidden_size":40})");
  EXPECT_EQ(of_11b.norm_placement, NormPlacement::shared);
  EXPECT_EQ(of_11b.inner, 40);
}

TEST(FalconForms, RwHasAlibiAndOneBlockAfterTheOther) {
  const DecoderSpec spec = form("FalconForCausalLM", R"({"alibi":true,"bias":true,
    "multi_query":false,"parallel_attn":false,"attention_dropout":0.1})");
  EXPECT_EQ(spec.kv_heads, 4);
  EXPECT_EQ(spec.norm_placement, NormPlacement::before);
  EXPECT_TRUE(spec.alibi && spec.alibi_scaled && spec.attention_bias && spec.mlp_bias);
  EXPECT_TRUE(spec.rotary.empty());
  EXPECT_THAT(names(spec), IsSupersetOf({"transformer.h.0.post_attention_layernorm.weight",
                                         "transformer.h.0.self_attention.query_key_value.bias"}));
}

TEST(NeoxForms, OfVersion4HaveNamesOfTheirOwn) {
  const DecoderSpec spec =
      form("GPTNeoXForCausalLM",
           R"({"rotary_pct":0.5,"rotary_emb_base":5000,"hidden_act":"gelu_fast"})");
  EXPECT_EQ(spec.head_order.rotary_dim, 4);
  ASSERT_EQ(spec.rotary.size(), 1u);
  EXPECT_THAT(spec.rotary[0].inverse_frequencies, ElementsAre(1, 1 / std::sqrt(5000.0), 0, 0));
  EXPECT_EQ(spec.activation, ops::Activation::gelu_tanh);
  EXPECT_EQ(spec.norm_placement, NormPlacement::parallel);
  EXPECT_EQ(form("GPTNeoXForCausalLM", R"({"use_parallel_residual":false})").norm_placement,
            NormPlacement::before);
  EXPECT_THAT(names(spec), IsSupersetOf({"gpt_neox.embed_in.weight", "embed_out.weight",
                                         "gpt_neox.layers.2.attention.dense.bias"}));
}

TEST(WindowForms, LayersWithoutAWindowMayHaveNoPositions) {
  EXPECT_THAT(layers_of(form("Exaone4ForCausalLM", R"({"sliding_window":8})")),
              ElementsAre(8, 8, 8, -1));
  EXPECT_THAT(layers_of(form("Exaone4ForCausalLM",
                             R"({"sliding_window":8,"sliding_window_pattern":"LG"})")),
              ElementsAre(8, -1, 8, -1));
  EXPECT_THAT(layers_of(form("Exaone4ForCausalLM", R"({"sliding_window":null})")),
              ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(
      problem("Exaone4ForCausalLM", R"({"sliding_window":8,"sliding_window_pattern":"LX"})"),
      HasSubstr("must be a number or letters L and G, found \"LX\""));
  EXPECT_THAT(
      layers_of(form("Cohere2ForCausalLM", R"({"sliding_window":8,"sliding_window_pattern":2})")),
      ElementsAre(8, -1, 8, -1));
  const DecoderSpec olmo = form("Olmo3ForCausalLM", R"({"sliding_window":8,"rope_theta":1000,
    "rope_scaling":{"rope_type":"linear","factor":4}})");
  EXPECT_THAT(layers_of(olmo), ElementsAre(8, 8, 8, 0));
  EXPECT_EQ(olmo.layer_at(0).rotary, 1);
  EXPECT_EQ(olmo.layer_at(3).rotary, 0);
  EXPECT_EQ(olmo.rotary[0].inverse_frequencies[0], 0.25);
  EXPECT_EQ(olmo.rotary[1].inverse_frequencies[0], 1);
  EXPECT_NEAR(olmo.rotary[1].inverse_frequencies[1], std::pow(1000, -0.25), 1e-12);
}

TEST(HunyuanForms, AlphaStretchesTheBase) {
  const DecoderSpec spec = form("HunYuanDenseV1ForCausalLM", R"({"rope_theta":10000,
    "rope_scaling":{"type":"dynamic","alpha":1000,"factor":1}})");
  EXPECT_NEAR(spec.rotary[0].inverse_frequencies[1],
              std::pow(10000 * std::pow(1000.0, 8.0 / 6), -2.0 / 8), 1e-12);
  EXPECT_FALSE(spec.keys_depend_on_length());
  EXPECT_THAT(names(spec), IsSupersetOf({"model.layers.0.self_attn.query_layernorm.weight"}));
  EXPECT_THAT(problem("HunYuanDenseV1ForCausalLM", R"({"use_cla":true})"),
              HasSubstr("\"use_cla\""));
  EXPECT_THAT(problem("HunYuanDenseV1ForCausalLM",
                      R"({"rope_scaling":{"type":"linear","factor":2,"alpha":3}})"),
              HasSubstr("rope type \"dynamic\""));
}

TEST(StableLmForms, WhatIsNotKnownIsRefused) {
  EXPECT_EQ(form("StableLmForCausalLM", R"({"use_parallel_residual":true})").norm_placement,
            NormPlacement::shared);
  EXPECT_THAT(problem("StableLmForCausalLM", R"({"qk_layernorm":true})"),
              HasSubstr("\"qk_layernorm\""));
}

}  // namespace
}  // namespace troupe::engine::models
