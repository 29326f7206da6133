// MicroBatchPass: forward and backward passes of a micro-batch through the chunks of this rank's
// layers, with what the forward passes save until the backward passes, which have their reverse
// order.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/data/experience.h"
#include "engine/models/decoder.h"
#include "engine/models/spec.h"
#include "engine/nn/context_part.h"
#include "engine/nn/offload.h"
#include "engine/nn/shared_rows.h"
#include "engine/train/output_head.h"
#include "engine/train/scoring.h"

namespace troupe::engine::train {

/// The distinct rows of `part`. Absent where fewer than an eighth of the rows would be saved, since
/// the copies for attention cost time and memory, and for models whose rows depend on the length of
/// their sequence.
std::optional<nn::SharedRows> shared_prefixes(const data::Experience& part,
                                              const models::DecoderSpec& spec);

struct PassOptions {
  ops::Precision precision = ops::Precision::f32;
  nn::Recomputed recomputed = {};
  bool share_prefixes = false;                ///< shared_prefixes()
  std::optional<PassDropout> dropout;         ///< absent: none
  nn::Offload* offload = nullptr;             ///< of saved activations; nullptr: none
  bool every_token = false;                   ///< OutputHeadOptions::every_token
  bool backward = true;                       ///< false: nothing is saved
  const nn::PassHooks* hooks = nullptr;       ///< nullptr: none
  const nn::PassHooks* last_hooks = nullptr;  ///< of the last of several micro-batches
  bool every_row = false;       ///< run what no loss reads, too: rows count in the routers' loads
  bool every_gradient = false;  ///< run backward passes whose gradients of the loss are 0
  bool counts_routes = false;   ///< forward passes add to the routers' loads
};

class MicroBatchPass {
 public:
  /// The arguments must outlive this.
  MicroBatchPass(models::Decoder& model, const data::Experience& part, const loss::Needs& needs,
                 const PassOptions& options);
  MicroBatchPass(const MicroBatchPass&) = delete;

  /// True where there is nothing to run. The same on every stage.
  bool empty() const { return head_.empty() && !every_row_; }
  /// Rows of the tensors between stages.
  std::int64_t rows() const;
  /// Decoder::forward_stage().
  Tensor forward(const Tensor& input, std::size_t chunk = 0);
  /// The heads, on the last stage. `hidden`: the result of forward(), absent where empty().
  HeadOutputs outputs(const Tensor& hidden, const std::optional<loss::ValueAndGrads>& known);
  /// Decoder::recompute_in_advance(), where Recomputed::in_advance asks for it.
  void before_backward(std::size_t chunk);
  /// Decoder::backward_stage() of the last chunk of the model from the gradients of the heads.
  Tensor backward(const loss::ValueAndGrads& grads);
  /// The same of the other chunks.
  Tensor backward(const Tensor& dresult, std::size_t chunk);

 private:
  Tensor through(const Tensor& dresult, std::size_t chunk);

  models::Decoder& model_;
  const data::Experience& part_;
  ops::PreparedLayout layout_;
  std::optional<nn::SharedRows> shared_;
  std::optional<nn::ContextPart> context_;
  std::optional<nn::Dropout> dropout_;
  nn::ForwardContext pass_;
  OutputHead head_;
  bool every_row_, counts_routes_;
  nn::Saved saved_;
  std::optional<nn::OffloadedPass> offloaded_;
};

}  // namespace troupe::engine::train
