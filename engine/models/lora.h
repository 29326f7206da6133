// LoraSpec: the adapters of a decoder's linear layers: a LoraConfig (engine/adapter/lora_config.h)
// resolved for one model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/nn/parameters.h"

namespace troupe::engine::models {

struct DecoderSpec;

struct LoraTarget {
  std::string module;  ///< "model.layers.0.self_attn.q_proj"
  int rank = 0;
  double scale = 0;  ///< alpha / rank, or alpha / sqrt(rank)
};

struct LoraSpec {
  std::vector<LoraTarget> targets;  ///< in the order of the model's weights
  bool dora = false;                ///< adapters have magnitude vectors
  double dropout = 0;               ///< probability, on the input of A, in training passes
  std::vector<std::string> saved;   ///< modules trained in full beside the adapter: "score"
};

// Names of an adapter's tensors as PEFT stores them, without its prefix "base_model.model.".
inline constexpr std::string_view lora_a = ".lora_A.weight", lora_b = ".lora_B.weight",
                                  lora_magnitude = ".lora_magnitude_vector";

/// The adapter's tensors for one weight [F, D] of the base, sharded as `base.shard`: A [R, D],
/// B [F, R] and, with DoRA, the magnitudes [F].
std::vector<nn::ParameterSpec> lora_tensors(const LoraTarget& target, const nn::ParameterSpec& base,
                                            bool dora, bool first_rank);

/// Freezes the base in the list of parameters and appends the adapter's tensors.
void add_lora(const DecoderSpec& spec, std::vector<nn::ParameterSpec>& list, bool first_rank);

}  // namespace troupe::engine::models
