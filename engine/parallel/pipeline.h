// Pipeline schedules: the order of work of one stage of a model whose layers are divided over a
// group of ranks. Pure functions of the number of stages, the stage, the number of micro-batches
// and the number of chunks of layers that every stage has (its virtual stages).
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::engine::parallel {

/// Activations go from a stage to the next one, those of a chunk's last stage to the first one;
/// their gradients go the other way.
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
  int chunk = 0;  ///< of the stage's layers
  bool operator==(const PipelineOperation&) const = default;
};
using PipelineSchedule = std::vector<PipelineOperation>;

/// One forward, one backward (1F1B: Narayanan et al. 2021, arXiv:2104.04473, fig. 4): stage s of p
/// runs min(p - 1 - s, m) forward passes ahead, so that it holds the activations of at most p - s
/// micro-batches. With several chunks the passes are interleaved as in Megatron-LM: groups of p
/// micro-batches go through one chunk after the other, 2 (p - 1 - s) + (chunks - 1) p passes ahead;
/// a last group that is shorter leaves out the passes of what it lacks. Forward and backward passes
/// of a chunk are in the order of the micro-batches, so sums of gradients have the order of a
/// single rank.
PipelineSchedule one_forward_one_backward(int stages, int stage, int micro_batches, int chunks = 1);

/// Forward passes alone, in the same order: scoring.
PipelineSchedule forward_only(int stages, int stage, int micro_batches, int chunks = 1);

/// Passes through a chunk whose activations a stage holds at most.
int max_passes_held(int stages, int stage, int micro_batches, int chunks = 1);

/// Share of the time in which a stage of equal stages waits: (p - 1) / (m chunks + p - 1).
double bubble(int stages, int micro_batches, int chunks = 1);

}  // namespace troupe::engine::parallel
