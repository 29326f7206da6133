// MiniCPM (Hu et al. 2024, arXiv:2404.06395): a Llama whose embeddings, residuals and logits are
// scaled as maximal update parametrization demands. MiniCPM3 (OpenBMB 2024) has multi-head latent
// attention (DeepSeek-AI 2024, arXiv:2405.04434).
#include <algorithm>
#include <cmath>

#include "engine/base/text/text.h"
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {
namespace {

void read_scaled_llama(ConfigReader& in, DecoderSpec& spec, const SizeNames& names) {
  for (const char* key : {"sparse_config", "mlp_bias"})
    if (in.find(key) && *in.find(key) != Json(false))
      in.fail(Errc::unsupported, cat("\"", key, "\" is not supported"));
  read_sizes(in, spec, names);
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
  spec.attention_bias = spec.output_bias = in.flag("attention_bias", false);
  spec.embedding_multiplier = in.positive({"scale_emb"}, 1);
  spec.residual_multiplier =
      in.positive({"scale_depth"}, 1) / std::sqrt(static_cast<double>(spec.layers));
  spec.logit_scale = in.positive({"dim_model_base"}, 1) / static_cast<double>(spec.width);
}

// The rank of a latent vector, whose default is that of the configuration class.
std::int64_t latent_rank(ConfigReader& in, std::string_view key, std::int64_t fallback) {
  if (const Json* rank = in.config().find(key); rank && rank->is_null())
    in.fail(Errc::unsupported, cat("\"", key, "\": null is not supported, a rank is expected"));
  return in.size({key}, 1, std::int64_t{1} << 20, fallback);
}

int even_channels(ConfigReader& in, std::string_view key, std::int64_t fallback) {
  const auto channels = static_cast<int>(in.size({key}, 2, 512, fallback));
  if (channels % 2) in.fail(Errc::bad_input, cat("\"", key, "\" must be even, found ", channels));
  return std::max(2, channels / 2 * 2);
}

void read_latent(ConfigReader& in, DecoderSpec& spec) {
  const int rotary = even_channels(in, "qk_rope_head_dim", 32);
  spec.head_size = even_channels(in, "qk_nope_head_dim", 64) + rotary;
  const auto value = static_cast<int>(
      in.size({"v_head_dim"}, 1, 1024, std::max<std::int64_t>(1, spec.width / spec.heads)));
  if (value > spec.head_size)
    in.fail(Errc::unsupported,
            cat("values of ", value,
                " channels are not supported: v_head_dim (or hidden_size / "
                "num_attention_heads) must be at most qk_nope_head_dim + qk_rope_head_dim = ",
                spec.head_size));
  spec.kv_heads = spec.heads;  // num_key_value_heads is not read
  // The norms have the default epsilon of their class, not rms_norm_eps.
  spec.latent = {.query_rank = latent_rank(in, "q_lora_rank", 768),
                 .key_rank = latent_rank(in, "kv_lora_rank", 256),
                 .rotary = rotary,
                 .value_size = std::min(value, spec.head_size),
                 .norm_eps = 1e-6};
}

// The table of the rotated channels, whose pairs come first in a head in memory.
void read_rotated_channels(ConfigReader& in, DecoderSpec& spec) {
  const int size = spec.head_size;
  spec.head_size = spec.latent->rotary;
  read_rotary(in, spec);
  spec.head_size = size;
  const auto pairs = static_cast<std::size_t>(size / 2);
  for (nn::RotarySpec& table : spec.rotary)
    for (auto* set : {&table.inverse_frequencies, &table.long_inverse_frequencies})
      if (!set->empty()) set->resize(pairs, 0.0);
}

}  // namespace

void read_minicpm(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"scale_emb"});
  read_scaled_llama(in, spec, {.tied = true});
  read_rotary(in, spec);
}

void read_minicpm3(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({"scale_emb", "q_lora_rank", "kv_lora_rank"});
  read_scaled_llama(in, spec,
                    {.head_size = {"qk_rope_head_dim"}, .default_head_size = 32, .tied = true});
  read_latent(in, spec);
  read_rotated_channels(in, spec);
}

}  // namespace troupe::engine::models
