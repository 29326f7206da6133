// Running the micro-batches of a batch through a model: one by one or, over pipeline stages, by a
// schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/train/micro_batch_pass.h"

namespace troupe::engine::train {

struct MicroBatches {
  std::vector<data::Experience> parts;
  const loss::Needs& needs;
  /// Gradients that are known before the forward pass of a micro-batch; empty: none are.
  std::function<std::optional<loss::ValueAndGrads>(std::size_t part)> known;
  /// Value and gradients of the loss from the outputs of the heads. Called once for each
  /// micro-batch in their order, with stages on the last one only. Without backward passes the
  /// gradients are not used.
  std::function<loss::ValueAndGrads(std::size_t part, HeadOutputs outputs)> loss;
};

/// Whether every gradient is 0: no backward pass is needed.
bool is_zero(const loss::ValueAndGrads& grads);

/// The micro-batches of `batch`, each of at most `tokens` tokens or one group of sequences.
std::vector<data::Experience> split_into_parts(const data::Experience& batch, std::int32_t tokens);

/// Forward passes and, with options.backward, backward passes, which add into the gradients in the
/// order of the micro-batches: their sums do not depend on the stages. Collective over the stages.
void run_micro_batches(models::Decoder& model, const MicroBatches& batch,
                       const PassOptions& options);

}  // namespace troupe::engine::train
