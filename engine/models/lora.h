// LoraSpec: which linear layers of a decoder have an adapter, and of what kind. What a user or an
// adapter_config.json asks for (engine/adapter/lora_config.h), settled for one model.
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
  bool dora = false;                ///< each has a magnitude vector
  double dropout = 0;               ///< in training passes, of what goes into A
  std::vector<std::string> saved;   ///< modules that are trained whole beside the adapter: "score"
};

// The names of an adapter's tensors, as PEFT stores them but for its prefix "base_model.model.".
inline constexpr std::string_view lora_a = ".lora_A.weight", lora_b = ".lora_B.weight",
                                  lora_magnitude = ".lora_magnitude_vector";

/// The adapter's tensors for one weight [F, D] of the base, of which this rank holds the part
/// `base.shard`: A [R, D], B [F, R] and, with DoRA, the magnitudes [F], split as the weight is.
std::vector<nn::Parameters::Wanted> lora_tensors(const LoraTarget& target,
                                                 const nn::Parameters::Wanted& base, bool dora,
                                                 bool first_rank);

/// Freezes what the adapter leaves as it is, and puts the adapter's tensors behind: what
/// parameter_list() of a model with one gives.
void add_lora(const DecoderSpec& spec, std::vector<nn::Parameters::Wanted>& list, bool first_rank);

}  // namespace troupe::engine::models
