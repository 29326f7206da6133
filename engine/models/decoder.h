// Decoder: a decoder-only transformer from a DecoderSpec. One forward for training, scoring and
// generation; explicit backward.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/models/spec.h"
#include "engine/models/stages.h"
#include "engine/nn/context_part.h"
#include "engine/nn/forward_context.h"
#include "engine/nn/head.h"
#include "engine/nn/router_balance.h"
#include "engine/nn/saved.h"

namespace troupe::engine::models {

/// The groups of ranks that share a decoder, and how.
struct ModelPart {
  /// Ranks that share every matrix (split.h); nullptr, or a group of one: this rank has all.
  parallel::Communicator* tp = nullptr;
  /// Pipeline stages (stages.h); nullptr, or a group of one: this rank has all layers.
  parallel::Communicator* pp = nullptr;
  bool divides_rows = false;              ///< over `tp`, between products: sequence parallelism
  int chunks = 1;                         ///< of the layers of each stage
  std::vector<std::int64_t> layers = {};  ///< of each chunk; empty: an even division
  std::vector<std::int64_t> noop = {};    ///< places among them without a layer (stages.h)
  /// Ranks that each have all of this part of the model and share the rows of a pass
  /// (nn/context_part.h); nullptr, or a group of one: this rank has all rows.
  parallel::Communicator* cp = nullptr;
  int ulysses = 1;     ///< size of the groups of `cp` that exchange heads; the others are rings
  int inner_ring = 1;  ///< size of the inner rings of these rings
  nn::ValueTypes types = {};  ///< of the parameters

  ModelPart(parallel::Communicator* tensor_parallel = nullptr) : tp(tensor_parallel) {}
  ModelPart(parallel::Communicator* tensor_parallel, parallel::Communicator* stages,
            std::vector<std::int64_t> wanted)
      : tp(tensor_parallel), pp(stages), layers(std::move(wanted)) {}
};

class Decoder {
 public:
  /// Allocates the parameters; values are undefined until a checkpoint is loaded
  /// (checkpoint/load_parameters.h) or copied in. The ranks of `part.tp` each have their part of
  /// the parameters, call forward and backward with the same tokens and get the same hidden states;
  /// those of `part.pp` have their layers. The groups outlive this. Failure(usage) where the model
  /// cannot be split so.
  Decoder(ops::Device& device, DecoderSpec spec, bool with_gradients, const ModelPart& part = {});
  ~Decoder();
  Decoder(Decoder&&) noexcept;

  /// Spec of the whole model.
  const DecoderSpec& spec() const;
  /// What the decoder was created with, without groups of one.
  const ModelPart& part() const;
  /// nullptr when this rank has the whole model.
  parallel::Communicator* tp() const;
  /// tp() where its ranks divide rows between products (nn/sequence_parallel.h), or nullptr.
  collectives::TensorGroup* rows_group() const;
  /// nullptr when this rank has all layers.
  parallel::Communicator* pp() const;
  /// nullptr when this rank has all rows of a pass.
  parallel::Communicator* cp() const;
  /// The groups of cp(); nullptr without one.
  const nn::ContextGroups* context() const;
  /// The ranks of pp() again, for the gradients of activations: where two stages have several
  /// chunks, activations and gradients are sent between the same two ranks in both directions.
  collectives::TensorGroup* pp_gradients() const;
  /// The ranks of tp() and of pp(), for tensors; nullptr where those are.
  collectives::TensorGroup* tp_tensors() const;
  collectives::TensorGroup* pp_tensors() const;
  const PipelineStage& stage() const;
  /// Enables or disables the adapter; initially it is enabled.
  void set_adapter_enabled(bool on);
  nn::Parameters& parameters();
  const nn::Parameters& parameters() const;
  /// All tensors of the model: parameters() or, with pipeline stages, a description of the whole
  /// model without memory.
  const nn::Parameters& whole() const;
  ops::Device& device() const;
  /// Of the routers of its mixtures of experts.
  nn::RouterBalance& balance();

  /// Hidden states [T, D] after the final norm, of a model without stages. Where there is a cache,
  /// keys and values of the T rows are written to it first, and row t attends to cached positions 0
  /// .. layout.positions[t].
  Tensor forward(std::span<const std::int32_t> tokens, const nn::ForwardContext& pass,
                 nn::Saved& saved);
  /// Adds into the gradients; pops what forward pushed. dhidden [T, D].
  void backward(std::span<const std::int32_t> tokens, const Tensor& dhidden,
                const nn::ForwardContext& pass, nn::Saved& saved);
  /// forward() through a chunk of this stage: `input` [U, D] comes from the chunk before (absent
  /// where stage().begins(chunk)), the result goes to the next one or, where stage().ends(chunk),
  /// is that of forward(). U is the number of distinct rows (nn/shared_rows.h). With pass.context
  /// all states have the rows of this rank only, and the last result has one row for each distinct
  /// row. With pass.rows_group those between stages have own rows; the last result has all.
  Tensor forward_stage(std::span<const std::int32_t> tokens, const Tensor& input,
                       const nn::ForwardContext& pass, nn::Saved& saved, std::size_t chunk = 0);
  /// Recomputes the layers of a chunk whose recomputed activations backward_stage() needs first.
  void recompute_in_advance(const nn::ForwardContext& pass, nn::Saved& saved,
                            std::size_t chunk = 0);
  /// backward() of forward_stage(): gradient of its result -> gradient of its input, absent where
  /// stage().begins(chunk). Chunks of a pass in reverse order.
  Tensor backward_stage(std::span<const std::int32_t> tokens, const Tensor& dresult,
                        const nn::ForwardContext& pass, nn::Saved& saved, std::size_t chunk = 0);

  /// Matrices of the GEMMs of forward() and the language head, without those of adapters.
  std::vector<nn::Parameter*> weights();
  /// The heads are on the last stage. The language head; its weight is the embedding when tied.
  /// Requires spec().labels == 0.
  const nn::Head& head() const;
  /// The score head. Requires spec().labels > 0.
  const nn::ScoreHead& score() const;

  /// Allocates a KV cache of `pages` pages for this rank's part of the model.
  nn::KvCache make_cache(std::int32_t pages, int page_size = 16) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Disables the adapter for its lifetime (PEFT's disable_adapter).
class AdapterDisabled {
 public:
  explicit AdapterDisabled(Decoder& model) : model_(model) { model_.set_adapter_enabled(false); }
  ~AdapterDisabled() { model_.set_adapter_enabled(true); }
  AdapterDisabled(const AdapterDisabled&) = delete;
  AdapterDisabled& operator=(const AdapterDisabled&) = delete;

 private:
  Decoder& model_;
};

}  // namespace troupe::engine::models
