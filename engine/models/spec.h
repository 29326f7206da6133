// DecoderSpec: everything that the numbers of a decoder-only transformer depend on, in one family-neutral value.
// A family (llama.cpp, ...) turns a Hugging Face config.json into one, or refuses by name what it cannot honour.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/models/lora.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::models {

struct DecoderSpec {
  std::string architecture;  ///< "LlamaForCausalLM", as config.json has it
  std::int64_t vocabulary = 0, width = 0, layers = 0, inner = 0;
  int heads = 0, kv_heads = 0, head_size = 0;
  double norm_eps = 1e-6;
  bool tied = false;  ///< the head is the embedding
  bool attention_bias = false, output_bias = false, mlp_bias = false;
  bool head_norms = false;                  ///< an RMSNorm over each head of queries and keys
  std::vector<double> inverse_frequencies;  ///< [K/2] radians per position, scaling already applied
  std::int64_t max_positions = 0;
  std::vector<std::int32_t> eos_ids;  ///< of config.json; generation_config.json may add to them
  std::int32_t bos_id = -1, pad_id = -1;
  int labels = 0;                ///< 0: a language model; more: a score head with this many outputs stands in the language head's place
  bool score_bias = false;       ///< the score head has a bias: Hugging Face's token classifiers have one, its sequence classifiers none
  std::optional<LoraSpec> lora;  ///< the base is frozen, and an adapter is trained

  /// Without the adapter's.
  std::int64_t parameter_count() const;
};

/// Reads config.json (both layouts: transformers 4 and 5). Refuses unknown architectures and fields that would change the numbers.
/// `where` is the file's path, for messages. Errc::unsupported, bad_input.
Result<DecoderSpec> read_spec(const Json& config, const std::string& where);

/// Names (those of the Hugging Face checkpoint) and shapes of all weights, in a fixed order: embedding, layers, norm, head;
/// of a model with an adapter what is frozen first, then what is trained.
std::vector<nn::Parameters::Wanted> parameter_list(const DecoderSpec& spec);

}  // namespace troupe::engine::models
