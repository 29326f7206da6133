// Conversions of families whose files have other names, joined tensors or further norms than Llama.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "engine/checkpoint/pickle/torch_file.h"
#include "engine/checkpoint/safetensors.h"
#include "launch/tools/convert/convert.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using engine::checkpoint::SafetensorsFile;
using engine::checkpoint::TorchFile;
using testing::HasSubstr;
namespace fs = std::filesystem;

struct Family {
  std::string architecture, changes;  ///< of small_config(), a JSON object
  bool legacy = false;                ///< has a place in the legacy layout
};

Json config_of(const Family& family) {
  Json out = small_config(family.architecture);
  const Json changes = value_or_throw(parse_json(family.changes, "changes"));
  for (const auto& [key, value] : changes.object()) out.set(key, value);
  return out;
}

const std::string chatglm =
    R"({"num_layers":5,"ffn_hidden_size":24,"padded_vocab_size":67,"multi_query_group_num":4,
        "multi_query_attention":true,"kv_channels":4,"seq_length":64,"add_qkv_bias":true,
        "rmsnorm":true})";

class Families : public testing::TestWithParam<Family> {
 protected:
  Families() {
    fs::create_directory(hf_);
    put_small_model(hf_, config_of(GetParam()));
  }
  void to_mg(const std::string& from, const std::string& to, int tensor, bool legacy) const {
    tools::convert::ConvertOptions options;
    options.load_type = from == hf_ ? "hf" : "mg";
    options.load_dir = from;
    options.save_dir = to;
    options.tensor = tensor;
    options.layers.pipeline = 2;
    options.use_mcore = !legacy;
    options.orm = has_score_head();
    value_or_throw(tools::convert::convert(options));
  }
  std::string back(const std::string& from) const {
    tools::convert::ConvertOptions options{.load_type = "mg", .save_type = "hf"};
    options.load_dir = from;
    options.save_dir = hf_;
    options.orm = has_score_head();
    const std::string folder = value_or_throw(tools::convert::convert(options));
    const std::string out = content(folder + "/model.safetensors");
    fs::remove_all(folder);
    return out;
  }

  static bool has_score_head() {
    return GetParam().architecture.ends_with("SequenceClassification");
  }

  const std::string root_ = scratch_folder(), hf_ = root_ + "/hf";
};

TEST_P(Families, ComeBackWithTheSameBytes) {
  const std::string original = content(hf_ + "/model.safetensors");
  to_mg(hf_, root_ + "/a", 2, false);
  to_mg(root_ + "/a", root_ + "/b", 1, false);
  EXPECT_TRUE(back(root_ + "/a") == original);
  EXPECT_TRUE(back(root_ + "/b") == original);
  if (GetParam().legacy) {
    to_mg(root_ + "/a", root_ + "/c", 2, true);
    EXPECT_TRUE(back(root_ + "/c") == original);
    return;
  }
  tools::convert::ConvertOptions options;
  options.load_dir = hf_;
  options.save_dir = root_ + "/c";
  EXPECT_THAT(tools::convert::convert(options).error().what, HasSubstr("only Megatron core has"));
}

INSTANTIATE_TEST_SUITE_P(
    Dense, Families,
    testing::Values(
        Family{"Qwen2ForSequenceClassification", R"({"num_labels":1})", true},
        Family{"AquilaModel", "{}", true}, Family{"MistralForCausalLM", "{}", true},
        Family{"SeedOssForCausalLM", R"({"attention_bias":true})", true},
        Family{"BaiChuanForCausalLM", "{}", true},
        Family{"InternLMForCausalLM", R"({"bias":true})", true},
        Family{"InternLM2ForCausalLM", R"({"bias":false})", true},
        Family{"InternLM3ForCausalLM", "{}", true}, Family{"BaichuanForCausalLM", "{}", true},
        Family{"BaichuanForCausalLM",
               R"({"max_position_embeddings":null,"model_max_length":64,"z_loss_weight":0})", true},
        Family{"QWenLMHeadModel", R"({"intermediate_size":48,"kv_channels":4,"seq_length":64})",
               true},
        Family{"ChatGLMModel", chatglm, true}, Family{"GlmForCausalLM", "{}", true},
        Family{"Glm4ForCausalLM", "{}"}, Family{"Phi3ForCausalLM", "{}", true},
        Family{"MiniCPMForCausalLM", R"({"scale_emb":12,"scale_depth":1.4,"dim_model_base":16})",
               true},
        Family{"MiniCPM3ForCausalLM",
               R"({"num_key_value_heads":8,"q_lora_rank":12,"kv_lora_rank":8,"attention_bias":true,
                   "qk_nope_head_dim":6,"qk_rope_head_dim":2,"scale_emb":12})"},
        Family{"GemmaForCausalLM", R"({"tie_word_embeddings":true,"hidden_act":"gelu"})", true},
        Family{"Gemma2ForCausalLM", R"({"tie_word_embeddings":true})"},
        Family{"Gemma3ForCausalLM", R"({"tie_word_embeddings":true})"},
        Family{"Starcoder2ForCausalLM", R"({"hidden_act":"gelu"})", true},
        Family{"BloomForCausalLM", R"({"n_layer":5,"n_head":8,"tie_word_embeddings":true})"}),
    [](const auto& family) { return cat(family.index, "_", family.param.architecture); });

// A joined projection of the files against the same rows of a Llama.
TEST(JoinedFiles, HaveTheRowsOfTheirParts) {
  const std::string root = scratch_folder();
  for (const char* name : {"/llama", "/phi3"}) fs::create_directory(root + name);
  put_small_model(root + "/llama", small_config("LlamaForCausalLM"));
  put_small_model(root + "/phi3", small_config("Phi3ForCausalLM"));
  tools::convert::ConvertOptions there;
  there.load_dir = root + "/llama";
  there.save_dir = root + "/mg";
  there.tensor = 2;
  there.use_mcore = true;
  value_or_throw(tools::convert::convert(there));
  tools::convert::ConvertOptions again{.load_type = "mg", .save_type = "hf"};
  again.load_dir = root + "/mg";
  again.save_dir = root + "/phi3";
  const std::string folder = value_or_throw(tools::convert::convert(again));
  const auto llama = value_or_throw(SafetensorsFile::open(root + "/llama/model.safetensors")),
             phi3 = value_or_throw(SafetensorsFile::open(folder + "/model.safetensors"));
  const auto bytes = [](const SafetensorsFile& file, const std::string& name) {
    const auto* tensor = file.find("model.layers.3." + name + ".weight");
    EXPECT_NE(tensor, nullptr) << name;
    const auto all = file.bytes(*tensor);
    return std::string(reinterpret_cast<const char*>(all.data()), all.size());
  };
  EXPECT_TRUE(bytes(phi3, "self_attn.qkv_proj") == bytes(llama, "self_attn.q_proj") +
                                                       bytes(llama, "self_attn.k_proj") +
                                                       bytes(llama, "self_attn.v_proj"));
  EXPECT_TRUE(bytes(phi3, "mlp.gate_up_proj") ==
              bytes(llama, "mlp.gate_proj") + bytes(llama, "mlp.up_proj"));
}

// Names of MindSpeed-LLM's layers with --post-norm, --embed-layernorm and
// --multi-head-latent-attention.
TEST(FurtherModules, HaveTheNamesOfMindSpeed) {
  const std::string root = scratch_folder();
  const auto has = [&](const Family& family, const std::vector<std::string>& names) {
    const std::string hf = cat(root, "/", family.architecture);
    fs::create_directory(hf);
    put_small_model(hf, config_of(family));
    tools::convert::ConvertOptions options;
    options.load_dir = hf;
    options.save_dir = hf + "-mg";
    options.use_mcore = true;
    value_or_throw(tools::convert::convert(options));
    const auto file =
        value_or_throw(TorchFile::open(hf + "-mg/iter_0000001/mp_rank_00/model_optim_rng.pt"));
    const auto* model = file.graph().find(file.root(), "model");
    return model != nullptr && std::ranges::all_of(names, [&](const std::string& name) {
             return file.graph().find(*model, name) != nullptr;
           });
  };
  EXPECT_TRUE(has({"Gemma2ForCausalLM", R"({"tie_word_embeddings":true})"},
                  {"decoder.layers.4.post_attn_norm.weight"}));
  EXPECT_TRUE(has({"MiniCPM3ForCausalLM", R"({"num_key_value_heads":8,"scale_emb":12})"},
                  {"decoder.layers.4.self_attention.linear_qkv.weight",
                   "decoder.layers.4.self_attention.linear_qb.weight",
                   "decoder.layers.4.self_attention.linear_kvb.weight",
                   "decoder.layers.4.self_attention.q_layernorm.weight",
                   "decoder.layers.4.self_attention.k_layernorm.weight"}));
  EXPECT_TRUE(has({"Glm4ForCausalLM", "{}"}, {"decoder.layers.4.post_mlp_layernorm.weight"}));
  EXPECT_TRUE(has({"BloomForCausalLM", R"({"n_layer":5,"n_head":8,"tie_word_embeddings":true})"},
                  {"embedding.word_embeddings.norm.bias"}));
}

TEST(OtherForms, WithoutAPlaceInMegatronAreRefused) {
  const std::string root = scratch_folder();
  const std::string gpt2 = R"({"n_embd":32,"n_layer":5,"n_head":8,"n_positions":64,
      "activation_function":"gelu_new","tie_word_embeddings":true})";
  for (const auto& [architecture, changes, reason] :
       {std::tuple{"Olmo2ForCausalLM", std::string("{}"), "norms over all heads of a row"},
        std::tuple{"CohereForCausalLM", std::string(R"({"tie_word_embeddings":true})"),
                   "one norm for attention and MLP"},
        std::tuple{"GPT2LMHeadModel", gpt2, "a table of positions"}}) {
    const std::string hf = cat(root, "/", architecture);
    fs::create_directory(hf);
    put_small_model(hf, config_of({architecture, changes}));
    tools::convert::ConvertOptions options;
    options.load_dir = hf;
    options.save_dir = root + "/mg";
    EXPECT_THAT(tools::convert::convert(options).error().what,
                HasSubstr(cat("cannot be converted: it has ", reason)))
        << architecture;
  }
}

}  // namespace
}  // namespace troupe::launch
