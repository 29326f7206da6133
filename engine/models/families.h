// Model families: the table, and the readers of config.json that families share.
#pragma once

#include <span>

#include "engine/models/config_reader.h"
#include "engine/models/spec.h"
#include "engine/models/storage.h"

namespace troupe::engine::models {

/// One row of the table in families.cpp. A new family is one file with functions of these types and
/// one row.
struct Family {
  const char* stem;        ///< "Llama" of "LlamaForCausalLM" in config.json's "architectures"
  const char* model_type;  ///< as in "model_type", for files without "architectures"
  void (*read)(ConfigReader& in, DecoderSpec& spec);
  Storage (*storage)(const DecoderSpec&) = nullptr;  ///< nullptr: stored as Llama
  const char* language = "ForCausalLM";              ///< suffix of the stem for a language model
  const char* score_stem = nullptr;                  ///< stem for a score head, where it differs
};

/// All families, in the order of the documentation.
std::span<const Family> families();
/// The family of an architecture with a language or a score head, or nullptr.
const Family* find_family(std::string_view architecture);

// engine/models/families/
void read_llama(ConfigReader& in, DecoderSpec& spec);
void read_mistral(ConfigReader& in, DecoderSpec& spec);
void read_qwen2(ConfigReader& in, DecoderSpec& spec);
void read_qwen3(ConfigReader& in, DecoderSpec& spec);
void read_phi3(ConfigReader& in, DecoderSpec& spec);
void read_glm(ConfigReader& in, DecoderSpec& spec);
void read_glm4(ConfigReader& in, DecoderSpec& spec);
void read_gemma(ConfigReader& in, DecoderSpec& spec);
void read_gemma2(ConfigReader& in, DecoderSpec& spec);
void read_gemma3(ConfigReader& in, DecoderSpec& spec);
void read_olmo2(ConfigReader& in, DecoderSpec& spec);
void read_olmo3(ConfigReader& in, DecoderSpec& spec);
void read_granite(ConfigReader& in, DecoderSpec& spec);
void read_cohere(ConfigReader& in, DecoderSpec& spec);
void read_cohere2(ConfigReader& in, DecoderSpec& spec);
void read_starcoder2(ConfigReader& in, DecoderSpec& spec);
void read_smollm3(ConfigReader& in, DecoderSpec& spec);
void read_bloom(ConfigReader& in, DecoderSpec& spec);
void read_gpt2(ConfigReader& in, DecoderSpec& spec);
void read_internlm(ConfigReader& in, DecoderSpec& spec);
void read_internlm2(ConfigReader& in, DecoderSpec& spec);
void read_internlm3(ConfigReader& in, DecoderSpec& spec);
void read_seed_oss(ConfigReader& in, DecoderSpec& spec);
void read_arcee(ConfigReader& in, DecoderSpec& spec);
void read_ernie(ConfigReader& in, DecoderSpec& spec);
void read_exaone4(ConfigReader& in, DecoderSpec& spec);
void read_falcon(ConfigReader& in, DecoderSpec& spec);
void read_gpt_neox(ConfigReader& in, DecoderSpec& spec);
void read_helium(ConfigReader& in, DecoderSpec& spec);
void read_hunyuan(ConfigReader& in, DecoderSpec& spec);
void read_nemotron(ConfigReader& in, DecoderSpec& spec);
void read_phi(ConfigReader& in, DecoderSpec& spec);
void read_stablelm(ConfigReader& in, DecoderSpec& spec);
void read_aquila(ConfigReader& in, DecoderSpec& spec);
void read_qwen1(ConfigReader& in, DecoderSpec& spec);
void read_baichuan_7b(ConfigReader& in, DecoderSpec& spec);
void read_baichuan(ConfigReader& in, DecoderSpec& spec);
void read_chatglm(ConfigReader& in, DecoderSpec& spec);
void read_minicpm(ConfigReader& in, DecoderSpec& spec);
void read_minicpm3(ConfigReader& in, DecoderSpec& spec);
void read_mixtral(ConfigReader& in, DecoderSpec& spec);
void read_qwen2_moe(ConfigReader& in, DecoderSpec& spec);
void read_qwen3_moe(ConfigReader& in, DecoderSpec& spec);
void read_olmoe(ConfigReader& in, DecoderSpec& spec);
void read_granite_moe(ConfigReader& in, DecoderSpec& spec);
void read_phimoe(ConfigReader& in, DecoderSpec& spec);
void read_dots1(ConfigReader& in, DecoderSpec& spec);
void read_glm4_moe(ConfigReader& in, DecoderSpec& spec);
void read_ernie_moe(ConfigReader& in, DecoderSpec& spec);
void read_hunyuan_moe(ConfigReader& in, DecoderSpec& spec);
Storage store_qwen2_moe(const DecoderSpec&);
Storage store_granite_moe(const DecoderSpec& spec);
Storage store_ernie_moe(const DecoderSpec&);
Storage store_hunyuan_moe(const DecoderSpec& spec);
Storage store_phi3(const DecoderSpec&);
Storage store_glm(const DecoderSpec&);
Storage store_gemma2(const DecoderSpec&);
Storage store_olmo2(const DecoderSpec&);
Storage store_starcoder2(const DecoderSpec&);
Storage store_bloom(const DecoderSpec&);
Storage store_gpt2(const DecoderSpec&);
Storage store_falcon(const DecoderSpec& spec);
Storage store_gpt_neox(const DecoderSpec& spec);
Storage store_hunyuan(const DecoderSpec& spec);
Storage store_phi(const DecoderSpec& spec);
Storage store_internlm2(const DecoderSpec&);
Storage store_qwen1(const DecoderSpec&);
Storage store_baichuan(const DecoderSpec&);
Storage store_chatglm(const DecoderSpec&);

/// Names of the sizes in a family's config.json, and their defaults (0: the field is required).
struct SizeNames {
  ConfigReader::Keys width = {"hidden_size"}, layers = {"num_hidden_layers"},
                     heads = {"num_attention_heads"}, inner = {"intermediate_size"},
                     positions = {"max_position_embeddings"}, eps = {"rms_norm_eps"},
                     vocabulary = {"vocab_size"}, kv_heads = {"num_key_value_heads"},
                     head_size = {"head_dim"};
  std::int64_t default_positions = 2048, default_head_size = 0;
  std::int64_t inner_of_width = 0;  ///< default inner width as a multiple of the width
  double default_eps = 1e-6;
  bool tied = false;  ///< default of tie_word_embeddings
};

/// Reads vocabulary, width, layers, heads, head size, inner width, positions, epsilon, token ids
/// and tie_word_embeddings.
void read_sizes(ConfigReader& in, DecoderSpec& spec, const SizeNames& names = {});
/// Reads the activation from the first of `keys`, by transformers' name: silu, gelu,
/// gelu_pytorch_tanh, ...
ops::Activation read_activation(ConfigReader& in, const ConfigReader::Keys& keys,
                                std::string_view fallback);
/// Sets a window of `window` keys for the layers that "layer_types" names "sliding_attention" or,
/// where it is absent, those with slides(layer, arg).
void read_windows(ConfigReader& in, DecoderSpec& spec, std::int64_t window,
                  bool (*slides)(std::int64_t layer, std::int64_t arg), std::int64_t arg);
/// For read_windows(): every layer but the `every`-th, ...
constexpr bool is_no_multiple(std::int64_t layer, std::int64_t every) {
  return (layer + 1) % every != 0;
}
/// Sets the window of every layer from "sliding_window"; `absent` is its default, 0: none.
void read_window(ConfigReader& in, DecoderSpec& spec, std::int64_t absent = 0);

}  // namespace troupe::engine::models
