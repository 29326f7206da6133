#include "engine/models/families.h"

#include <algorithm>
#include <array>

#include "engine/base/text/text.h"
#include "engine/models/experts_config.h"
#include "engine/models/head_config.h"

namespace troupe::engine::models {
namespace {

constexpr std::array family_table = {
    Family{"Llama", "llama", read_llama},
    Family{"Mistral", "mistral", read_mistral},
    Family{"Qwen2", "qwen2", read_qwen2},
    Family{"Qwen3", "qwen3", read_qwen3},
    Family{"Phi3", "phi3", read_phi3, store_phi3},
    Family{"Glm", "glm", read_glm, store_glm},
    Family{"Glm4", "glm4", read_glm4, store_glm},
    Family{"Gemma", "gemma", read_gemma},
    Family{"Gemma2", "gemma2", read_gemma2, store_gemma2},
    Family{"Gemma3", "gemma3_text", read_gemma3, store_gemma2, "ForCausalLM", "Gemma3Text"},
    Family{"Olmo2", "olmo2", read_olmo2, store_olmo2},
    Family{"Olmo3", "olmo3", read_olmo3, store_olmo2},
    Family{"Granite", "granite", read_granite},
    Family{"Cohere", "cohere", read_cohere},
    Family{"Cohere2", "cohere2", read_cohere2},
    Family{"Starcoder2", "starcoder2", read_starcoder2, store_starcoder2},
    Family{"SmolLM3", "smollm3", read_smollm3},
    Family{"Bloom", "bloom", read_bloom, store_bloom},
    Family{"GPT2", "gpt2", read_gpt2, store_gpt2, "LMHeadModel"},
    Family{"InternLM", "internlm", read_internlm},
    Family{"InternLM2", "internlm2", read_internlm2, store_internlm2},
    Family{"InternLM3", "internlm3", read_internlm3},
    Family{"Aquila", "aquila", read_aquila},
    Family{"Aquila", "aquila", read_aquila, nullptr, "Model"},
    Family{"QWen", "qwen", read_qwen1, store_qwen1, "LMHeadModel"},
    Family{"Baichuan", "baichuan", read_baichuan, store_baichuan},
    Family{"BaiChuan", "baichuan", read_baichuan_7b, store_baichuan},
    Family{"ChatGLM", "chatglm", read_chatglm, store_chatglm, "Model"},
    Family{"ChatGLM", "chatglm", read_chatglm, store_chatglm, "ForConditionalGeneration"},
    Family{"MiniCPM", "minicpm", read_minicpm},
    Family{"MiniCPM3", "minicpm3", read_minicpm3},
    Family{"SeedOss", "seed_oss", read_seed_oss},
    Family{"Arcee", "arcee", read_arcee},
    Family{"Ernie4_5", "ernie4_5", read_ernie},
    Family{"Exaone4", "exaone4", read_exaone4, store_olmo2},
    Family{"Falcon", "falcon", read_falcon, store_falcon},
    Family{"GPTNeoX", "gpt_neox", read_gpt_neox, store_gpt_neox},
    Family{"Helium", "helium", read_helium},
    Family{"HunYuanDenseV1", "hunyuan_v1_dense", read_hunyuan, store_hunyuan},
    Family{"Nemotron", "nemotron", read_nemotron},
    Family{"Phi", "phi", read_phi, store_phi},
    Family{"StableLm", "stablelm", read_stablelm},
    Family{"Mixtral", "mixtral", read_mixtral, store_mixtral},
    Family{"Qwen2Moe", "qwen2_moe", read_qwen2_moe, store_qwen2_moe},
    Family{"Qwen3Moe", "qwen3_moe", read_qwen3_moe},
    Family{"Olmoe", "olmoe", read_olmoe},
    Family{"GraniteMoe", "granitemoe", read_granite_moe, store_granite_moe},
    Family{"Phimoe", "phimoe", read_phimoe, store_mixtral},
    Family{"Dots1", "dots1", read_dots1},
    Family{"Glm4Moe", "glm4_moe", read_glm4_moe},
    Family{"Ernie4_5_Moe", "ernie4_5_moe", read_ernie_moe, store_ernie_moe},
    Family{"HunYuanMoEV1", "hunyuan_v1_moe", read_hunyuan_moe, store_hunyuan_moe},
};

std::string language_name(const Family& family) {
  return cat(family.stem, family.language);
}

// Where the supported architectures are listed, and the one of the most similar name.
std::string known_architectures(const std::string& wanted) {
  std::vector<std::string> names;
  for (const auto& family : family_table) names.push_back(language_name(family));
  const std::string near = nearest(wanted, names);
  return cat("; ", near.empty() ? "" : cat("the nearest name is ", quote(near), "; "),
             "docs/formats.md lists the ", names.size(),
             " supported ones, each also as ForSequenceClassification and ForTokenClassification");
}

const Family* family_of(const Json& config, const std::string& architecture) {
  if (!architecture.empty()) return find_family(architecture);
  const Json* type = config.find("model_type");
  for (const auto& family : family_table)
    if (type && *type == Json(family.model_type)) return &family;
  return nullptr;
}

}  // namespace

std::span<const Family> families() {
  return family_table;
}

const Family* find_family(std::string_view architecture) {
  for (const auto& family : family_table) {
    if (architecture == language_name(family)) return &family;
    const std::string_view stem = family.score_stem ? family.score_stem : family.stem;
    if (architecture.starts_with(stem) && is_score_head(architecture.substr(stem.size())))
      return &family;
  }
  return nullptr;
}

Result<DecoderSpec> read_spec(const Json& config, const std::string& where) {
  if (!config.is_object())
    return fail(Errc::bad_input,
                cat(where, ": expected a JSON object, found ", config.type_name()));
  const std::string architecture = architecture_of(config);
  const Family* family = family_of(config, architecture);
  if (family == nullptr) {
    std::string name = architecture;
    if (const Json* type = config.find("model_type"); name.empty() && type && type->is_string())
      name = type->string();
    return fail(Errc::unsupported, cat(where, ": the architecture ", quote(name),
                                       " is not supported", known_architectures(name)));
  }
  DecoderSpec spec;
  ConfigReader in(config, where);
  family->read(in, spec);
  RETURN_IF_ERROR(in.result());
  spec.architecture = language_name(*family);
  RETURN_IF_ERROR(read_head(config, where, spec));
  return spec;
}

void read_sizes(ConfigReader& in, DecoderSpec& spec, const SizeNames& names) {
  constexpr std::int64_t limit = std::int64_t{1} << 20;
  spec.vocabulary = in.size(names.vocabulary, 1, std::int64_t{1} << 24);
  spec.width = in.size(names.width, 1, limit);
  spec.layers = in.size(names.layers, 1, 4096);
  const std::int64_t heads = in.size(names.heads, 1, 65536);
  spec.heads = static_cast<int>(heads);
  spec.inner = names.inner_of_width > 0
                   ? in.size(names.inner, 1, limit, names.inner_of_width * spec.width)
                   : in.size(names.inner, 1, limit);
  spec.max_positions = in.size(names.positions, 1, 1 << 28, names.default_positions);
  const std::int64_t kv_heads = in.size(names.kv_heads, 1, heads, heads);
  spec.kv_heads = static_cast<int>(kv_heads);
  if (heads % kv_heads)
    in.fail(Errc::bad_input, cat("num_attention_heads ", heads, " is not a multiple of ",
                                 names.kv_heads.front(), " ", kv_heads));
  const bool divided = names.default_head_size == 0;
  const bool given =
      std::ranges::any_of(names.head_size, [&](auto key) { return in.find(key) != nullptr; });
  if (divided && !given && spec.width % heads)
    in.fail(Errc::bad_input,
            cat("hidden_size ", spec.width, " is not a multiple of num_attention_heads ", heads,
                names.head_size.empty() ? "" : cat(", and there is no ", names.head_size.front())));
  spec.head_size = static_cast<int>(
      in.size(names.head_size, 2, 1024, divided ? spec.width / heads : names.default_head_size));
  if (spec.head_size < 2 || spec.head_size % 2)
    in.fail(Errc::bad_input,
            cat("the head size must be even for rotary positions, found ", spec.head_size));
  spec.head_size = std::max(spec.head_size, 2);  // later readers expect a pair of channels
  spec.norm_eps = in.number(names.eps, names.default_eps);
  if (!(spec.norm_eps >= 0 && spec.norm_eps < 1))
    in.fail(Errc::bad_input,
            cat(names.eps.front(), " must be between 0 and 1, found ", spec.norm_eps));
  spec.tied = in.flag("tie_word_embeddings", names.tied);
  const auto bos = in.token_ids("bos_token_id", spec.vocabulary),
             pad = in.token_ids("pad_token_id", spec.vocabulary);
  spec.eos_ids = in.token_ids("eos_token_id", spec.vocabulary);
  spec.bos_id = bos.empty() ? -1 : bos.front();
  spec.pad_id = pad.empty() ? -1 : pad.front();
}

ops::Activation read_activation(ConfigReader& in, const ConfigReader::Keys& keys,
                                std::string_view fallback) {
  const std::string name = in.text(keys, fallback);
  if (name == "silu" || name == "swish") return ops::Activation::silu;
  if (name == "gelu") return ops::Activation::gelu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast")
    return ops::Activation::gelu_tanh;
  if (name == "relu2") return ops::Activation::relu2;
  in.fail(Errc::unsupported,
          cat(keys.front(), " ", quote(name, 40),
              " is not supported (known: silu, gelu, gelu_new, gelu_pytorch_tanh, relu2)"));
  return ops::Activation::silu;
}

void read_windows(ConfigReader& in, DecoderSpec& spec, std::int64_t window,
                  bool (*slides)(std::int64_t layer, std::int64_t arg), std::int64_t arg) {
  const auto types = in.layer_types(spec.layers);
  spec.layer.resize(static_cast<std::size_t>(spec.layers));
  for (std::size_t i = 0; i < spec.layer.size(); ++i) {
    const bool here =
        types.empty() ? slides(static_cast<std::int64_t>(i), arg) : types[i] == "sliding_attention";
    if (here && window == 0)
      in.fail(Errc::bad_input,
              "\"layer_types\" has sliding_attention, but there is no \"sliding_window\"");
    if (here) spec.layer[i].window = static_cast<int>(window);
  }
}

void read_window(ConfigReader& in, DecoderSpec& spec, std::int64_t absent) {
  // null means no window
  const bool present = in.config().find("sliding_window") != nullptr;
  const std::int64_t window = in.size({"sliding_window"}, 1, 1 << 28, present ? 0 : absent);
  if (window > 0)
    spec.layer.assign(static_cast<std::size_t>(spec.layers), {.window = static_cast<int>(window)});
}

}  // namespace troupe::engine::models
