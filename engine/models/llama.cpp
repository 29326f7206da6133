// Llama (Touvron et al. 2023; Dubey et al. 2024): RMSNorm before each part, rotary positions, grouped heads, SwiGLU.
#include <cmath>

#include "engine/base/text.h"
#include "engine/models/family.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {

Result<DecoderSpec> read_llama(const Json& config, const std::string& where) {
  if (auto known = refuse_foreign_fields(config, where); !known) return fail(known.error());
  if (const Json* act = config.find("hidden_act"); act && *act != Json("silu") && *act != Json("swish"))
    return fail(Errc::unsupported, cat(where, ": hidden_act ", quote(act->dump(), 40), " is not supported in a Llama (known: silu)"));
  auto spec = read_sizes(config, where);
  if (!spec) return spec;
  const auto eps = number_of(config, "rms_norm_eps", where, 1e-6);
  const auto tied = flag_of(config, "tie_word_embeddings", where, false);
  const auto attention_bias = flag_of(config, "attention_bias", where, false), mlp_bias = flag_of(config, "mlp_bias", where, false);
  const auto frequencies = rotary_frequencies(config, where, spec->head_size);
  if (!eps) return fail(eps.error());
  if (!(*eps >= 0 && *eps < 1)) return fail(Errc::bad_input, cat(where, ": rms_norm_eps must be between 0 and 1, found ", *eps));
  for (const auto* flag : {&tied, &attention_bias, &mlp_bias})
    if (!*flag) return fail(flag->error());
  if (!frequencies) return fail(frequencies.error());
  spec->norm_eps = *eps, spec->tied = *tied;
  spec->attention_bias = spec->output_bias = *attention_bias;
  spec->mlp_bias = *mlp_bias;
  spec->inverse_frequencies = *frequencies;
  return spec;
}

}  // namespace troupe::engine::models
