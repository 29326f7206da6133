// DecoderSpec: everything that the numbers of a decoder-only transformer depend on, in one
// family-neutral value. A family (families/llama.cpp, ...) turns a Hugging Face config.json into
// one, or refuses by name what it cannot honour.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/models/lora.h"
#include "engine/nn/parameters.h"
#include "engine/nn/rotary.h"

namespace troupe::engine::models {

/// Where the norms of a layer stand: before attention and MLP; after them, on what they add (OLMo
/// 2); both (Gemma 2, GLM-4); or one before, and attention and MLP side by side (Cohere).
enum class NormPlace : std::uint8_t { before, after, both, shared };

/// What one layer has of its own.
struct LayerSpec {
  int window = 0;  ///< keys that a row sees, its own among them; 0: all
  int rotary = 0;  ///< its table in DecoderSpec::rotary; -1: positions do not turn anything
};

/// How files order the channels of a head's queries and keys. Inside, channel i turns with channel
/// i + K/2, for all i.
struct HeadOrder {
  int size = 0;     ///< K; 0: as inside
  int turning = 0;  ///< the first of them turn
  bool interleaved =
      false;  ///< 2i turns with 2i + 1; else, among those that turn, i with i + turning/2
};

struct DecoderSpec {
  std::string architecture;  ///< "LlamaForCausalLM", as config.json has it
  std::int64_t vocabulary = 0, width = 0, layers = 0, inner = 0;
  int heads = 0, kv_heads = 0, head_size = 0;
  bool tied = false;  ///< the head is the embedding

  bool layer_norm = false, norm_bias = false;  ///< LayerNorm, perhaps with a bias; else RMSNorm
  double norm_eps = 1e-6, norm_offset = 0;     ///< a gain g multiplies by offset + g
  NormPlace norm_place = NormPlace::before;

  bool attention_bias = false, output_bias = false, mlp_bias = false;
  bool head_norms = false;       ///< an RMSNorm over each head of queries and keys
  bool width_norms = false;      ///< an RMSNorm over all of a row's queries, and over its keys
  double attention_scale = 0;    ///< multiplies q.k; 0: 1/sqrt(K)
  double attention_softcap = 0;  ///< scores become softcap * tanh(score / softcap); 0: they stay
  bool alibi = false;            ///< keys lose score by their distance (Press et al. 2021)
  std::vector<nn::RotarySpec> rotary;
  std::vector<LayerSpec> layer;  ///< [layers], or empty: all as LayerSpec begins
  HeadOrder head_order;          ///< of the files

  ops::Activation activation = ops::Activation::silu;
  bool gated = true;  ///< down(act(gate(x)) * up(x)); else down(act(up(x)))

  std::int64_t learned_positions = 0;  ///< rows of a table that is added to the embeddings; 0: none
  bool embedding_norm = false;
  double embedding_multiplier = 1, residual_multiplier = 1;
  double logit_scale = 1, logit_softcap = 0;

  std::int64_t max_positions = 0;
  std::vector<std::int32_t> eos_ids;  ///< of config.json; generation_config.json may add to them
  std::int32_t bos_id = -1, pad_id = -1;
  int labels = 0;  ///< 0: a language model; more: a score head with this many outputs stands in the
                   ///< language head's place
  bool score_bias = false;  ///< the score head has a bias: Hugging Face's token classifiers have
                            ///< one, its sequence classifiers none
  std::optional<LoraSpec> lora;  ///< the base is frozen, and an adapter is trained

  LayerSpec layer_at(std::int64_t index) const {
    return layer.empty() ? LayerSpec{} : layer[static_cast<std::size_t>(index)];
  }
  /// The keys of a sequence of `length` tokens are not those that it had one token before: they are
  /// computed again.
  bool keys_change_at(std::int64_t length) const;
  /// Keys may change as a sequence grows.
  bool keys_change() const;
  /// Without the adapter's.
  std::int64_t parameter_count() const;
};

/// Reads config.json (both layouts: transformers 4 and 5). Refuses unknown architectures and fields
/// that would change the numbers. `where` is the file's path, for messages. Errc::unsupported,
/// bad_input.
Result<DecoderSpec> read_spec(const Json& config, const std::string& where);

/// Names (those that a Llama has in a Hugging Face checkpoint; storage.h has those of other
/// families' files) and shapes of all weights, in a fixed order: embedding, layers, norm, head; of
/// a model with an adapter what is frozen first, then what is trained.
std::vector<nn::Parameters::Wanted> parameter_list(const DecoderSpec& spec);

}  // namespace troupe::engine::models
