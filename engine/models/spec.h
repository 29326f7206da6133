// DecoderSpec: the architecture of a decoder-only transformer, independent of its family. A family
// (families/llama.cpp, ...) converts a Hugging Face config.json to a DecoderSpec and rejects what
// it does not support.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/nn/parameters.h"
#include "engine/nn/rotary.h"
#include "engine/ops/routing.h"

namespace troupe::engine::models {

struct DecoderSpec;

struct LoraTarget {
  std::string module;  ///< "model.layers.0.self_attn.q_proj"
  int rank = 0;
  double scale = 0;  ///< alpha / rank, or alpha / sqrt(rank)
};

/// The adapters of a decoder's linear layers: a LoraConfig (engine/adapter/lora_config.h) resolved
/// for one model.
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

/// A projection of all experts of a layer, one tensor in transformers 5: a module
/// "model.layers.N.mlp.experts.gate_up_proj" (gate_proj above up_proj) or "...down_proj" of a
/// LoraTarget.
struct FusedExperts {
  std::int64_t outputs, inputs;  ///< of an expert
};
std::optional<FusedExperts> fused_experts(std::string_view module, const DecoderSpec& spec);
/// The adapter's tensors: A [E * R, inputs] and B [E, outputs * R], the matrices of an expert one
/// after the other.
std::vector<nn::ParameterSpec> fused_lora_tensors(const LoraTarget& target, const DecoderSpec& spec,
                                                  const FusedExperts& of);

/// Freezes the base in the list of parameters and appends the adapter's tensors.
void add_lora(const DecoderSpec& spec, std::vector<nn::ParameterSpec>& list, bool first_rank);

/// Placement of a layer's norms: before attention and MLP; after them, on their output (OLMo 2);
/// both (Gemma 2, GLM-4); one norm before parallel attention and MLP (Cohere); or a norm before
/// each of the two (GPT-NeoX).
enum class NormPlacement : std::uint8_t { before, after, both, shared, parallel };

/// Settings that differ between layers.
struct LayerSpec {
  int window = 0;  ///< sliding window: keys that a row attends to, its own included; 0: all
  int rotary = 0;  ///< index into DecoderSpec::rotary; -1: no rotary embedding
};

/// Order of the channels of a head's queries and keys in the files. In memory, channel i is paired
/// with channel i + K/2, for all i.
struct HeadOrder {
  int size = 0;        ///< K; 0: as in memory
  int rotary_dim = 0;  ///< number of rotated channels, the first ones
  /// Pairs are (2i, 2i + 1); otherwise (i, i + rotary_dim/2).
  bool interleaved = false;
};

/// Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434): queries, and keys with values,
/// are linear functions of two small normalized vectors of a row (nn/latent_projections.h).
struct LatentSpec {
  std::int64_t query_rank = 0, key_rank = 0;  ///< sizes of the vectors
  /// Rotated channels of a head, the last ones in the files; those of keys are the same for all
  /// heads.
  int rotary = 0;
  int value_size = 0;      ///< V, channels of a head's value; at most K
  double norm_eps = 1e-6;  ///< of the vectors' RMSNorm
};

/// Experts in place of the MLP of some layers (nn/mixture.h). They are gated and have no biases.
struct ExpertsSpec {
  ops::Router router;
  bool choice_bias = false;       ///< a bias of the choice values, which training does not change
  std::int64_t inner = 0;         ///< of an expert
  std::int64_t shared_inner = 0;  ///< of the shared expert, a whole MLP; 0: none
  bool shared_gate = false;       ///< the shared expert has a gate
  std::vector<bool> sparse;       ///< [layers] whether a layer has experts; empty: all have
  double auxiliary_coefficient = 0;  ///< router_aux_loss_coef of config.json
  bool auxiliary_loss = false;       ///< output_router_logits: config.json asks for that loss
};

struct DecoderSpec {
  std::string architecture;  ///< as in config.json: "LlamaForCausalLM"
  std::int64_t vocabulary = 0, width = 0, layers = 0, inner = 0;
  int heads = 0, kv_heads = 0, head_size = 0;
  bool tied = false;  ///< the head is the embedding

  bool layer_norm = false,
       norm_bias = false;  ///< LayerNorm, with or without bias; else RMSNorm
  double norm_eps = 1e-6,
         norm_offset = 0;  ///< a gain g multiplies by offset + g
  NormPlacement norm_placement = NormPlacement::before;

  bool attention_bias = false, output_bias = false, mlp_bias = false;
  bool head_norms = false;           ///< RMSNorm over each head of queries and keys
  bool rotated_head_norms = false;   ///< the same, after the rotary embedding (Hunyuan)
  bool width_norms = false;          ///< RMSNorm over all heads of a row's queries, and of its keys
  std::optional<LatentSpec> latent;  ///< instead of projections of the hidden state
  double attention_scale = 0;        ///< multiplies q.k; 0: 1/sqrt(K)
  double attention_softcap = 0;      ///< caps scores: softcap * tanh(score / softcap); 0: no cap
  bool alibi = false;                ///< ALiBi position bias (Press et al. 2021)
  bool alibi_scaled = false;         ///< attention_scale multiplies the bias, too (Falcon)
  std::vector<nn::RotarySpec> rotary;
  std::vector<LayerSpec> layer;  ///< [layers], or empty: the defaults of LayerSpec
  HeadOrder head_order;          ///< in the files

  ops::Activation activation = ops::Activation::silu;
  bool gated = true;  ///< down(act(gate(x)) * up(x)); else down(act(up(x)))

  std::int64_t learned_positions = 0;  ///< rows of the learned position table; 0: none
  bool embedding_norm = false;
  double embedding_multiplier = 1, residual_multiplier = 1;
  double logit_scale = 1, logit_softcap = 0;
  bool head_bias = false;        ///< the language head has a bias
  bool normalized_head = false;  ///< the head's rows are divided by their norms (NormHead)

  std::int64_t max_positions = 0;
  std::vector<std::int32_t> eos_ids;  ///< of config.json; generation_config.json may add to them
  std::int32_t bos_id = -1, pad_id = -1;
  int labels = 0;  ///< 0: a language head; otherwise the number of outputs of a score head
  /// The score head has a bias: true for Hugging Face's token classifiers, false for its sequence
  /// classifiers.
  bool score_bias = false;
  std::optional<ExpertsSpec> experts;  ///< a mixture of experts; absent: one MLP in every layer
  std::optional<LoraSpec> lora;        ///< adapter; the base is frozen

  LayerSpec layer_at(std::int64_t index) const {
    return layer.empty() ? LayerSpec{} : layer[static_cast<std::size_t>(index)];
  }
  /// Whether a layer has experts.
  bool has_experts(std::int64_t index) const {
    return experts && (experts->sparse.empty() || experts->sparse[static_cast<std::size_t>(index)]);
  }
  std::int64_t expert_layers() const;  ///< number of layers with experts
  /// Whether the keys of a sequence change when it grows to `length` tokens and must be recomputed.
  bool keys_change_at(std::int64_t length) const;
  /// Whether keys depend on the length of their sequence.
  bool keys_depend_on_length() const;
  /// Number of parameters of the base, without an adapter.
  std::int64_t parameter_count() const;
  /// parameter_count() without the experts of each layer that a token does not have.
  std::int64_t active_parameter_count() const;
  /// V, channels of a head's output; keys and values have head_size of them in memory.
  int value_size() const { return latent ? latent->value_size : head_size; }
};

/// Reads config.json (both layouts: transformers 4 and 5). Rejects unknown architectures and
/// unsupported fields that would change the results. `where` is the file's path, for messages.
/// Errc::unsupported, bad_input.
Result<DecoderSpec> read_spec(const Json& config, const std::string& where);

/// Names (those of a Llama in a Hugging Face checkpoint; storage.h maps them to other families'
/// files) and shapes of all weights, in a fixed order: embedding, layers, norm, head. With an
/// adapter, frozen weights come first.
std::vector<nn::ParameterSpec> parameter_list(const DecoderSpec& spec);

}  // namespace troupe::engine::models
