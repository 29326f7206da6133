// The passes of a pipeline stage over micro-batches: the work of a schedule
// (parallel/pipeline.h) and the messages between it and its neighbours.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/collectives/tensor_group.h"
#include "engine/ops/device.h"

namespace troupe::engine::train {

/// The passes of one stage through the chunks of its layers.
struct StagePasses {
  std::span<const std::int64_t> rows;  ///< rows between stages, of each micro-batch
  std::int64_t width = 0;              ///< of a row
  int chunks = 1;                      ///< of every stage
  /// Of a micro-batch: its input (absent in the model's first chunk) -> its output (may be absent
  /// in the last).
  std::function<Tensor(std::size_t micro_batch, std::size_t chunk, const Tensor& input)> forward;
  /// Gradient of the output (absent in the model's last chunk) -> that of the input (absent in the
  /// first). Empty: forward passes alone.
  std::function<Tensor(std::size_t micro_batch, std::size_t chunk, const Tensor& doutput)> backward;
  /// Work for the backward pass that does not need the gradient of the output; runs while the stage
  /// receives it. Not called for the model's last chunk.
  std::function<void(std::size_t micro_batch, std::size_t chunk)> before_backward;
};

/// The ranks of the stages: activations and their gradients are sent in groups of their own where
/// both go from one rank to the same other one (two stages of several chunks).
struct StageGroups {
  collectives::TensorGroup &activations, &gradients;
};

/// Runs the passes of this rank's stage: one forward, one backward. Collective over the groups,
/// whose ranks all pass the same rows. A message is sent while the next passes run. With one chunk
/// a stage waits for a message before it sends the next in that direction; with several it has up
/// to as many on their way as there are stages.
void run_stages(ops::Device& device, const StageGroups& groups, const StagePasses& passes);

}  // namespace troupe::engine::train
