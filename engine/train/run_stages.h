// The passes of a pipeline stage over micro-batches: the work of a schedule
// (parallel/pipeline.h) and the messages between it and its neighbours.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/ops/device.h"
#include "engine/parallel/communicator.h"

namespace troupe::engine::train {

/// The passes of one stage through its layers.
struct StagePasses {
  std::span<const std::int64_t> rows;  ///< rows between stages, of each micro-batch
  std::int64_t width = 0;              ///< of a row
  /// Of a micro-batch: its input (absent on the first stage) -> its output (may be absent on the
  /// last).
  std::function<Tensor(std::size_t micro_batch, const Tensor& input)> forward;
  /// Gradient of the output (absent on the last stage) -> that of the input (absent on the first).
  /// Empty: forward passes alone.
  std::function<Tensor(std::size_t micro_batch, const Tensor& doutput)> backward;
  /// Work for the backward pass that does not need the gradient of the output; runs while the stage
  /// receives it. Not called on the last stage.
  std::function<void(std::size_t micro_batch)> before_backward;
};

/// Runs the passes of this rank's stage: one forward, one backward. Collective over `pp`, whose
/// ranks all pass the same rows. A message is sent while the next passes run: a stage waits for one
/// only before it sends the next in that direction.
void run_stages(ops::Device& device, parallel::Communicator& pp, const StagePasses& passes);

}  // namespace troupe::engine::train
