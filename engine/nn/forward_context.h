// ForwardContext: what a forward or backward pass carries through every module: the device, the
// layout of the batch, the precision of products and, in generation, the KV cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/json/fields.h"
#include "engine/collectives/tensor_group.h"
#include "engine/ops/device.h"

namespace troupe::engine::nn {

/// Keys and values of a generating model: per layer two tensors [pages * page_size, G*K]. The
/// scheduler assigns the pages.
struct KvCache {
  int page_size = 16;
  std::int32_t pages = 0;
  std::vector<Tensor> k, v;  ///< one per layer
};

/// Dropout of a training pass. The id of a row is the number of its sequence in the whole batch,
/// times 2^32, plus its position in it, so what is dropped depends neither on the micro-batches nor
/// on the grid.
struct Dropout {
  std::uint64_t key = 0;  ///< of the adapters', the run and the update
  ops::RowIds rows;       ///< [T] of the rows of modules' inputs
  /// Probabilities of values of the hidden states (ops::Dropout) and of weights of attention.
  double hidden = 0, attention = 0;
  std::uint64_t hidden_key = 0, attention_key = 0;
  ops::RowIds hidden_rows;     ///< of the rows of residual connections
  ops::RowIds attention_rows;  ///< of the rows of queries
};

/// Activations that the backward pass recomputes.
enum class Recompute : std::uint8_t {
  full,        ///< all but the inputs of layers (Chen et al. 2016, arXiv:1604.06174)
  attention,   ///< outputs of attention (Korthikanti et al. 2022, arXiv:2205.05198: "selective")
  activation,  ///< outputs of the MLPs' activation functions
  norm,        ///< outputs of the norms before attention and MLP
};
constexpr std::array<std::string_view, 4> names_of(Recompute) {
  return {"full", "attention", "activation", "norm"};
}

/// Which layers of a stage Recompute::full recomputes, as --recompute-method of Megatron-LM.
enum class RecomputeMethod : std::uint8_t {
  uniform,  ///< all, in groups of which only the input is saved
  block,    ///< the first ones, each by itself
};
constexpr std::array<std::string_view, 2> names_of(RecomputeMethod) {
  return {"uniform", "block"};
}

/// Activations that a training pass recomputes in its backward pass instead of saving them: less
/// memory, equal bits.
struct Recomputed {
  std::vector<Recompute> kinds;
  RecomputeMethod method = RecomputeMethod::uniform;  ///< of Recompute::full
  std::int64_t layers = 1;  ///< uniform: layers of a group; block: recomputed layers of a stage
  /// A stage recomputes what it needs first while it waits for the gradients of the next stage.
  bool in_advance = false;

  bool has(Recompute kind) const { return std::ranges::find(kinds, kind) != kinds.end(); }
  bool operator==(const Recomputed&) const = default;

  static void each_field(auto& self, auto&& field) {
    field("recompute", self.kinds,
          "activation recomputation, for less memory and identical results: full (keep only each "
          "layer's input), attention (selective), activation (of the MLPs), norm; a list combines "
          "several, [] keeps all activations");
    field("recompute_method", self.method,
          "which layers train.recompute: full recomputes; uniform: all, in groups of "
          "train.recompute_layers layers of which only the input is kept; block: the first "
          "train.recompute_layers layers of each stage, the others keep everything");
    field("recompute_layers", self.layers, Range{1, 1 << 16},
          "layers of a group (train.recompute_method: uniform), or recomputed layers of a stage "
          "(block)");
    field("recompute_in_advance", self.in_advance,
          "train.recompute: full with parallel.pp: a stage recomputes the layers whose gradients "
          "come first while it waits for the gradients of the next stage");
  }
};

class OffloadedPass;
struct SharedRows;
struct ContextPart;
struct LoraRows;

/// Called between the blocks of a pass, which are numbered from 0 on each rank; empty: not called.
struct PassHooks {
  /// Before the forward pass of a block reads its weights; 0 also before the embedding, the number
  /// of blocks before the final norm and the head.
  std::function<void(std::size_t block)> before_forward;
  /// After the backward pass of a block.
  std::function<void(std::size_t block)> after_backward;
};

struct ForwardContext {
  ops::Device& device;
  const ops::PreparedLayout& layout;  ///< with the pages of the cache, if there is one
  ops::Precision precision = ops::Precision::f32;
  KvCache* cache = nullptr;          ///< nullptr: training and scoring
  const Dropout* dropout = nullptr;  ///< nullptr: no dropout
  /// [N] current length of each sequence, where earlier rows are in the cache or later rows follow;
  /// empty: sequences end with their last row.
  std::span<const std::int32_t> lengths = {};
  Recomputed recomputed = {};
  /// GEMMs read packed weights where they exist; the caller has refreshed them.
  bool packed = false;
  /// Rows computed once for several sequences (shared_rows.h); nullptr: none.
  const SharedRows* shared = nullptr;
  /// Rows that this rank computes (context_part.h); nullptr: all. Module inputs and outputs then
  /// have these rows only, and `dropout` has their ids.
  const ContextPart* context = nullptr;
  /// Tensor-parallel group whose ranks divide `rows`, all rows of the pass or of `context`
  /// (sequence_parallel.h); nullptr: each has all. Inputs and outputs of norms and residual
  /// connections then have own rows.
  collectives::TensorGroup* rows_group = nullptr;
  std::int64_t rows = 0;
  const PassHooks* hooks = nullptr;  ///< nullptr: none
  /// Files with the activations that layers save (offload.h); nullptr: they stay in memory.
  OffloadedPass* offload = nullptr;
  /// Rows with adapters of their own, in generation (lora_rows.h); nullptr: none.
  const LoraRows* lora_rows = nullptr;
};

}  // namespace troupe::engine::nn
