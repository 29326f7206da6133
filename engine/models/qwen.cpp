// Qwen2 (Yang et al. 2024, arXiv:2407.10671): a Llama whose queries, keys and values have biases. Qwen3 (2025, arXiv:2505.09388): none,
// and an RMSNorm over each head of queries and keys.
#include "engine/base/text.h"
#include "engine/models/family.h"

namespace troupe::engine::models {
namespace {

// Only layers of full attention: with use_sliding_window the later ones would see less.
Result<> refuse_windows(const Json& config, const std::string& where) {
  const Json* types = config.find("layer_types");
  if (!types || !types->is_array()) return {};
  for (const Json& type : types->array())
    if (type != Json("full_attention"))
      return fail(Errc::unsupported, cat(where, ": \"layer_types\" has ", quote(type.dump(), 40), "; only full_attention is supported"));
  return {};
}

}  // namespace

Result<DecoderSpec> read_qwen2(const Json& config, const std::string& where) {
  if (auto full = refuse_windows(config, where); !full) return fail(full.error());
  auto spec = read_llama(config, where);
  if (spec) spec->attention_bias = true, spec->output_bias = false;
  return spec;
}

Result<DecoderSpec> read_qwen3(const Json& config, const std::string& where) {
  if (auto full = refuse_windows(config, where); !full) return fail(full.error());
  auto spec = read_llama(config, where);
  if (spec) spec->head_norms = true;
  return spec;
}

}  // namespace troupe::engine::models
