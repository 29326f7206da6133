// Conversion of each family's config.json: real files, both layouts, and rejected fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/text/text.h"
#include "engine/models/families.h"
#include "engine/models/stages.h"
#include "tests/engine/models/family_config.h"

namespace troupe::engine::models {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view plain_family =
    R"({"vocab_size":16,"hidden_size":16,"intermediate_size":12,"num_hidden_layers":4,
  "num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":64})";

Result<DecoderSpec> read_family(std::string_view architecture, std::string_view changes = "{}") {
  return read_changed(plain_family, architecture, changes);
}

DecoderSpec spec_of(std::string_view architecture, std::string_view changes = "{}") {
  return value_or_throw(read_family(architecture, changes));
}

std::string family_problem(std::string_view architecture, std::string_view changes) {
  const auto spec = read_family(architecture, changes);
  return spec ? "accepted" : spec.error().what;
}

std::vector<int> windows(const DecoderSpec& spec) {
  std::vector<int> out;
  for (std::int64_t i = 0; i < spec.layers; ++i) out.push_back(spec.layer_at(i).window);
  return out;
}

Result<DecoderSpec> real(std::string_view name) {
  const std::string path = cat(TROUPE_TEST_DATA "/model_configs/", name, ".json");
  return read_spec(value_or_throw(read_json(path)), path);
}

TEST(Families, RealFilesGiveTheNumbersOfTheirModels) {
  EXPECT_EQ(value_or_throw(real("llama-3.2-1b-instruct")).parameter_count(), 1235814400);
  EXPECT_EQ(value_or_throw(real("qwen2-7b-instruct")).parameter_count(), 7615616512);
  EXPECT_EQ(value_or_throw(real("qwen2.5-0.5b-instruct")).parameter_count(), 494032768);
  EXPECT_EQ(value_or_throw(real("qwen3-1.7b")).parameter_count(), 1720574976);
  EXPECT_EQ(value_or_throw(real("qwen3-4b")).parameter_count(), 4022468096);
  EXPECT_EQ(value_or_throw(real("phi-3-mini-4k-instruct")).parameter_count(), 3821079552);
  EXPECT_EQ(value_or_throw(real("codegeex2-6b-chatglm")).parameter_count(), 6243584000);
  EXPECT_EQ(value_or_throw(real("phi-3-mini-4k-instruct")).layer_at(31).window, 2047);
  EXPECT_EQ(value_or_throw(real("mistral-tiny-312")).layer_at(0).window, 1024);
  EXPECT_EQ(value_or_throw(real("qwen2-7b-instruct")).layer_at(27).window, 0)
      << "use_sliding_window is false";
}

TEST(Families, RealFilesOfOthersAreRefusedByName) {
  for (const auto& [file, name] : {std::pair("deepseek-v2-lite", "DeepseekV2ForCausalLM"),
                                   std::pair("internlm2-1_8b-reward", "InternLM2ForRewardModel")})
    EXPECT_THAT(real(file).error().what, HasSubstr(cat("\"", name, "\" is not supported"))) << file;
}

// Sizes of published config.json files, and the numbers of parameters of their weights.
TEST(Families, PublishedSizesGiveTheNumbersOfTheirModels) {
  const auto count = [](std::string_view architecture, std::int64_t vocabulary, std::int64_t width,
                        std::int64_t inner, std::int64_t layers, std::int64_t heads,
                        std::string_view more) {
    Json config = value_or_throw(parse_json(more, "more"));
    config.set("architectures", Json::Array{architecture})
        .set("vocab_size", vocabulary)
        .set("padded_vocab_size", vocabulary)
        .set("hidden_size", width)
        .set("intermediate_size", inner)
        .set("ffn_hidden_size", inner)
        .set("num_hidden_layers", layers)
        .set("num_attention_heads", heads);
    return value_or_throw(read_spec(config, "config.json")).parameter_count();
  };
  constexpr std::string_view glm = R"({"kv_channels":128,"multi_query_attention":true,
    "multi_query_group_num":2,"add_qkv_bias":true,"rope_ratio":500,"seq_length":131072})";
  EXPECT_EQ(count("BaiChuanForCausalLM", 64000, 4096, 11008, 32, 32, "{}"), 7000559616);
  EXPECT_EQ(
      count("BaichuanForCausalLM", 64000, 5120, 13696, 40, 40, R"({"model_max_length":4096})"),
      13264901120);
  EXPECT_EQ(count("BaichuanForCausalLM", 125696, 4096, 11008, 32, 32,
                  R"({"max_position_embeddings":4096,"z_loss_weight":0})"),
            7505973248);
  EXPECT_EQ(count("QWenLMHeadModel", 151936, 4096, 22016, 32, 32,
                  R"({"kv_channels":128,"no_bias":true})"),
            7721324544);
  EXPECT_EQ(count("ChatGLMModel", 65024, 4096, 13696, 28, 32, glm), 6243584000);
  EXPECT_EQ(count("ChatGLMModel", 151552, 4096, 13696, 40, 32, glm), 9399951360);
  EXPECT_EQ(count("MiniCPMForCausalLM", 122753, 2304, 5760, 40, 36, R"({"scale_emb":12})"),
            2724880896);
  EXPECT_EQ(count("MiniCPM3ForCausalLM", 73448, 2560, 6400, 62, 40, R"({"scale_emb":12})"),
            4073875968);
  EXPECT_EQ(count("InternLMForCausalLM", 103168, 4096, 11008, 32, 32, "{}"), 7321948160);
  EXPECT_EQ(count("InternLM3ForCausalLM", 128512, 4096, 10240, 48, 32,
                  R"({"num_key_value_heads":2,"head_dim":128})"),
            8804241408);
  EXPECT_EQ(
      count(
          "SeedOssForCausalLM", 155136, 5120, 27648, 64, 80,
          R"({"num_key_value_heads":8,"head_dim":128,"attention_bias":true,"attention_out_bias":false,
                      "attention_dropout":0.1,"residual_dropout":0.1,"max_position_embeddings":524288,
                      "rope_theta":1e7,"rope_scaling":{"rope_type":"default"}})"),
      36151104512);
  EXPECT_EQ(count("AquilaModel", 100008, 4096, 11008, 32, 32, "{}"), 7295537152);
}

TEST(Families, BaichuanFilesStateWhichModelTheyAre) {
  const auto spec = [](std::string_view more) { return spec_of("BaichuanForCausalLM", more); };
  EXPECT_FALSE(spec("{}").alibi);
  EXPECT_FALSE(spec("{}").normalized_head);
  EXPECT_TRUE(spec(R"({"max_position_embeddings":null,"model_max_length":64})").alibi);
  EXPECT_TRUE(spec(R"({"z_loss_weight":0})").normalized_head);
  EXPECT_TRUE(spec(R"({"vocab_size":125696})").normalized_head);
}

TEST(Families, QwenHasThePositionsThatItsAdaptationsLeaveAlone) {
  constexpr std::string_view
      length = R"({"seq_length":32})",
      off = R"({"seq_length":32,"use_dynamic_ntk":false,"use_logn_attn":false})";
  EXPECT_EQ(spec_of("QWenLMHeadModel", length).max_positions, 32);
  EXPECT_EQ(spec_of("QWenLMHeadModel", off).max_positions, 64);
}

TEST(Families, EachHasBothScoreHeads) {
  for (const Family& family : families())
    for (const char* head : {"ForSequenceClassification", "ForTokenClassification"}) {
      const std::string name = cat(family.score_stem ? family.score_stem : family.stem, head);
      std::string config = R"({"num_labels":3,"hidden_size":64,"n_embd":64,"n_layer":2,"n_head":2,
                               "multi_query_attention":true,"multi_query_group_num":2})";
      if (family.model_type == std::string_view("dots1"))  // has no default
        config = R"({"num_labels":3,"n_routed_experts":4,"num_experts_per_tok":2})";
      const auto spec = spec_of(name, config);
      EXPECT_EQ(spec.labels, 3) << name;
      EXPECT_EQ(spec.score_bias, std::string_view(head) == "ForTokenClassification") << name;
    }
}

std::vector<bool> sparse(std::string_view architecture, std::string_view changes) {
  const DecoderSpec spec = spec_of(architecture, changes);
  std::vector<bool> out;
  for (std::int64_t i = 0; i < spec.layers; ++i) out.push_back(spec.has_experts(i));
  return out;
}

TEST(Families, ExpertsAreInTheLayersThatTheFileNames) {
  EXPECT_EQ(sparse("MixtralForCausalLM", "{}"), (std::vector{true, true, true, true}));
  EXPECT_EQ(sparse("Qwen3MoeForCausalLM", R"({"decoder_sparse_step":2})"),
            (std::vector{false, true, false, true}));
  EXPECT_EQ(sparse("Qwen2MoeForCausalLM", R"({"mlp_only_layers":[0,2]})"),
            (std::vector{false, true, false, true}));
  EXPECT_EQ(sparse("Glm4MoeForCausalLM", R"({"first_k_dense_replace":3})"),
            (std::vector{false, false, false, true}));
  EXPECT_EQ(sparse("Ernie4_5_MoeForCausalLM", R"({"moe_layer_end_index":2})"),
            (std::vector{false, true, true, false}));
}

// The sizes of published config.json files; the numbers are those of the models' cards.
TEST(Families, MixturesHaveTheNumbersOfTheirModels) {
  const DecoderSpec mixtral = spec_of("MixtralForCausalLM", R"({"vocab_size":32000,
      "hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,
      "num_attention_heads":32,"num_key_value_heads":8})");
  EXPECT_EQ(mixtral.parameter_count(), 46702792704);
  EXPECT_EQ(mixtral.active_parameter_count(), 12879925248);
  const DecoderSpec qwen = spec_of("Qwen3MoeForCausalLM", R"({"vocab_size":151936,
      "hidden_size":2048,"intermediate_size":6144,"num_hidden_layers":48,"head_dim":128,
      "num_attention_heads":32,"num_key_value_heads":4})");
  EXPECT_EQ(qwen.parameter_count(), 30532122624);
  EXPECT_EQ(qwen.active_parameter_count() / 100'000'000, 33);
}

TEST(Families, ExpertsThatDoNotFitAreRefused) {
  EXPECT_THAT(family_problem("MixtralForCausalLM", R"({"num_experts_per_tok":9})"),
              HasSubstr("num_experts_per_tok 9 is more than num_local_experts 8"));
  EXPECT_THAT(family_problem("Glm4MoeForCausalLM", R"({"n_group":3})"),
              HasSubstr("n_group 3 must divide n_routed_experts 128"));
  EXPECT_THAT(family_problem("PhimoeForCausalLM", R"({"input_jitter_noise":0.01})"),
              HasSubstr("\"input_jitter_noise\" other than 0"));
  EXPECT_THAT(family_problem("Qwen3MoeForCausalLM", R"({"mlp_only_layers":[7]})"),
              HasSubstr("\"mlp_only_layers\" must be a list of layers from 0 to 3"));
  EXPECT_TRUE(check_split(spec_of("MixtralForCausalLM"), 2));
  EXPECT_THAT(check_mixture(spec_of("MixtralForCausalLM"), "context", 2).error().what,
              HasSubstr("context parallelism of 2 is not possible for a mixture of experts"));
}

TEST(Families, WindowsAreWhereTheFamilyHasThem) {
  EXPECT_EQ(windows(spec_of("MistralForCausalLM")), (std::vector{4096, 4096, 4096, 4096}))
      << "absent";
  EXPECT_EQ(windows(spec_of("MistralForCausalLM", R"({"sliding_window":null})")),
            (std::vector{0, 0, 0, 0}));
  EXPECT_EQ(
      windows(spec_of("Qwen2ForCausalLM",
                      R"({"use_sliding_window":true,"sliding_window":8,"max_window_layers":3})")),
      (std::vector{0, 0, 0, 8}));
  EXPECT_EQ(windows(spec_of("Gemma2ForCausalLM", R"({"sliding_window":8})")),
            (std::vector{8, 0, 8, 0}));
  EXPECT_EQ(
      windows(spec_of("Gemma3ForCausalLM", R"({"sliding_window":8,"sliding_window_pattern":3})")),
      (std::vector{8, 8, 0, 8}));
  EXPECT_EQ(
      windows(spec_of(
          "Gemma2ForCausalLM",
          R"({"sliding_window":8,"layer_types":["full_attention","full_attention","sliding_attention","full_attention"]})")),
      (std::vector{0, 0, 8, 0}));
}

TEST(Families, VersionFourAndFiveOfGemma3TurnAlike) {
  const auto four =
      spec_of("Gemma3ForCausalLM", R"({"rope_theta":500.0,"rope_local_base_freq":100.0,"head_dim":8,
                                                      "rope_scaling":{"rope_type":"linear","factor":2.0}})");
  const auto five = spec_of("Gemma3ForCausalLM", R"({"head_dim":8,"rope_parameters":{
      "full_attention":{"rope_theta":500.0,"rope_type":"linear","factor":2.0},"sliding_attention":{"rope_theta":100.0}}})");
  ASSERT_EQ(four.rotary.size(), 2u);
  for (int table : {0, 1})
    EXPECT_EQ(four.rotary[table].inverse_frequencies, five.rotary[table].inverse_frequencies);
  EXPECT_EQ(four.rotary[0].inverse_frequencies[0], 0.5);
  EXPECT_EQ(four.layer_at(0).rotary, 1);
}

TEST(Families, ACapThatIsNullIsNone) {
  EXPECT_EQ(spec_of("Gemma2ForCausalLM").attention_softcap, 50);
  EXPECT_EQ(spec_of("Gemma2ForCausalLM").logit_softcap, 30);
  EXPECT_EQ(spec_of("Gemma2ForCausalLM", R"({"attn_logit_softcapping":null})").attention_softcap,
            0);
  EXPECT_EQ(spec_of("Gemma3ForCausalLM").logit_softcap, 0);
}

TEST(Families, SomeLayersOfSmolLM3HaveNoPositions) {
  const auto turns = [](std::string_view changes) {
    std::vector<int> out;
    const auto spec = spec_of("SmolLM3ForCausalLM", changes);
    for (std::int64_t i = 0; i < spec.layers; ++i) out.push_back(spec.layer_at(i).rotary);
    return out;
  };
  EXPECT_EQ(turns("{}"), (std::vector{0, 0, 0, -1}));
  EXPECT_EQ(turns(R"({"no_rope_layers":[0,1,1,0]})"), (std::vector{-1, 0, 0, -1}));
  EXPECT_THAT(family_problem("SmolLM3ForCausalLM", R"({"no_rope_layers":[0,1]})"),
              HasSubstr("must be a list of num_hidden_layers 4"));
}

TEST(Families, ThatArePublishedWithDropoutAreReadWithoutIt) {
  EXPECT_EQ(family_problem("GraniteForCausalLM", R"({"attention_dropout":0.1})"), "accepted");
  EXPECT_EQ(
      family_problem("Starcoder2ForCausalLM",
                     R"({"attention_dropout":0.1,"residual_dropout":0.1,"embedding_dropout":0.1})"),
      "accepted");
  EXPECT_EQ(
      family_problem(
          "GPT2LMHeadModel",
          R"({"n_embd":16,"n_layer":2,"n_head":2,"attn_pdrop":0.1,"embd_pdrop":0.1,"resid_pdrop":0.1})"),
      "accepted");
  EXPECT_THAT(family_problem("LlamaForCausalLM", R"({"attention_dropout":0.1})"),
              HasSubstr("\"attention_dropout\""));
}

TEST(Families, RefuseByNameWhatTheyCannotHonour) {
  EXPECT_THAT(family_problem("Qwen2ForCausalLM", R"({"dual_chunk_attention_config":{}})"),
              HasSubstr("\"dual_chunk_attention_config\""));
  EXPECT_THAT(family_problem("CohereForCausalLM", R"({"use_qk_norm":true})"),
              HasSubstr("\"use_qk_norm\""));
  EXPECT_THAT(family_problem("LlamaForCausalLM", R"({"sliding_window":8})"),
              HasSubstr("\"sliding_window\""));
  EXPECT_THAT(family_problem(
                  "GPT2LMHeadModel",
                  R"({"n_embd":16,"n_layer":2,"n_head":2,"scale_attn_by_inverse_layer_idx":true})"),
              HasSubstr("\"scale_attn_by_inverse_layer_idx\""));
  EXPECT_THAT(
      family_problem("BloomForCausalLM", R"({"apply_residual_connection_post_layernorm":true})"),
      HasSubstr("\"apply_residual_connection_post_layernorm\""));
  EXPECT_THAT(family_problem("Gemma3ForConditionalGeneration", R"({"text_config":{}})"),
              HasSubstr("\"Gemma3ForConditionalGeneration\""));
  EXPECT_THAT(family_problem("Gemma2ForCausalLM", R"({"use_bidirectional_attention":true})"),
              HasSubstr("\"use_bidirectional_attention\""));
  EXPECT_THAT(family_problem("BaichuanForCausalLM", R"({"z_loss_weight":0.1})"),
              HasSubstr("\"z_loss_weight\""));
  EXPECT_THAT(family_problem("QWenLMHeadModel", R"({"intermediate_size":13})"),
              HasSubstr("\"intermediate_size\" must be even"));
  EXPECT_THAT(family_problem("QWenLMHeadModel", R"({"attn_dropout_prob":0.1})"),
              HasSubstr("\"attn_dropout_prob\""));
  EXPECT_THAT(
      family_problem("ChatGLMForConditionalGeneration", R"({"multi_query_attention":false})"),
      HasSubstr("\"multi_query_attention\""));
  EXPECT_THAT(family_problem("InternLMForCausalLM", R"({"rotary":{"type":"spiral"}})"),
              HasSubstr("\"rotary\" has an unknown"));
  EXPECT_THAT(family_problem("MiniCPMForCausalLM", R"({"sparse_config":{}})"),
              HasSubstr("\"sparse_config\""));
  for (const auto& [change, problem] :
       {std::pair(R"({"q_lora_rank":null})", "\"q_lora_rank\": null"),
        std::pair(R"({"qk_nope_head_dim":5})", "\"qk_nope_head_dim\" must be even"),
        std::pair(R"({"qk_rope_head_dim":5})", "must be even for rotary positions"),
        std::pair(R"({"v_head_dim":128})", "values of 128 channels")})
    EXPECT_THAT(family_problem("MiniCPM3ForCausalLM", change), HasSubstr(problem));
  EXPECT_THAT(family_problem("MiniCPMForCausalLM", R"({"q_lora_rank":8})"),
              HasSubstr("\"q_lora_rank\""));
  EXPECT_THAT(family_problem("Phi3ForCausalLM", R"({"attention_bias":true})"),
              HasSubstr("\"attention_bias\""));
  EXPECT_THAT(
      family_problem("LlamaForCausalLM",
                     R"({"rope_parameters":{"rope_theta":1e4,"partial_rotary_factor":0.5}})"),
      HasSubstr("\"partial_rotary_factor\""));
  EXPECT_THAT(
      family_problem("Qwen2ForCausalLM",
                     R"({"layer_types":["full_attention","x","full_attention","full_attention"]})"),
      HasSubstr("\"layer_types\" has"));
}

}  // namespace
}  // namespace troupe::engine::models
