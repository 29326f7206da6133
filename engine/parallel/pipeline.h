// Pipeline schedules: the order of work of one stage of a model whose layers are divided over a
// group of ranks. Pure functions of the number of stages, the stage and the number of
// micro-batches.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::engine::parallel {

/// Activations go from a stage to the next one, their gradients to the one before.
enum class PipelineWork : std::uint8_t {
  receive_activations,
  forward,
  send_activations,
  receive_gradients,
  backward,
  send_gradients,
};

struct PipelineOperation {
  PipelineWork work;
  int micro_batch;
  bool operator==(const PipelineOperation&) const = default;
};
using PipelineSchedule = std::vector<PipelineOperation>;

/// One forward, one backward (1F1B: Narayanan et al. 2021, arXiv:2104.04473, fig. 4): stage s of p
/// runs min(p - 1 - s, m) forward passes ahead, so that it holds the activations of at most p - s
/// micro-batches. Forward and backward passes are in the order of the micro-batches, so sums of
/// gradients have the order of a single rank.
PipelineSchedule one_forward_one_backward(int stages, int stage, int micro_batches);

/// Forward passes alone: scoring.
PipelineSchedule forward_only(int stages, int stage, int micro_batches);

/// Share of the time in which a stage of equal stages waits: (p - 1) / (m + p - 1).
double bubble(int stages, int micro_batches);

}  // namespace troupe::engine::parallel
