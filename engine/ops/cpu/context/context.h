// Context: what the operations of the CPU device run on. One instruction set's kernels, a thread
// pool and scratch memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/ops/cpu/context/thread_pool.h"
#include "engine/ops/cpu/kernels/kernels.h"
#include "engine/ops/memory/host_buffer.h"
#include "engine/ops/shapes.h"

namespace troupe::engine::ops::cpu {

/// Multiplications of a product that is worth more than one thread.
inline constexpr std::int64_t parallel_threshold = 250'000;

/// Float memory that only grows, so that a hot path does not allocate.
class Scratch {
 public:
  explicit Scratch(std::shared_ptr<BlockPool> blocks) : blocks_(std::move(blocks)) {}
  /// Returns memory for `count` floats. Their values are undefined.
  float* need(std::int64_t count);
  /// Returns the memory of the last need().
  float* data() const { return reinterpret_cast<float*>(buffer_->host_pointer()); }

 private:
  std::shared_ptr<BlockPool> blocks_;
  std::unique_ptr<HostBuffer> buffer_;
};

/// Scratch memory of a device's operations.
class Workspace {
 public:
  Workspace(const std::shared_ptr<BlockPool>& blocks, int threads);

  Scratch packed_a, packed_b;  ///< packed operands of a GEMM, shared by all threads
  Scratch gain;                ///< offset + gain of a norm
  /// Lists of one call, kept so that a hot path does not allocate.
  std::vector<GemmArgs> grouped_gemms, few_rows_ranges;
  std::vector<double> partial_sums;
  /// Memory of the unpacked GEMM kernels, one per thread.
  Scratch& gemm(int worker) { return gemm_[static_cast<std::size_t>(worker)]; }
  /// Operands that a thread packs for itself, attention scores and logits, one per thread.
  Scratch& tiles(int worker) { return tiles_[static_cast<std::size_t>(worker)]; }

 private:
  std::vector<Scratch> gemm_, tiles_;
};

struct Context {
  const Kernels& kernels;
  ThreadPool& pool;
  Workspace& workspace;

  float* gemm_memory(int worker) const { return workspace.gemm(worker).need(gemm_scratch); }

  /// Calls visit(item, worker) for items 0 .. count - 1, on all threads if `work` (multiplications
  /// in total) is large enough.
  template <class Visit>
  void parallel_for(std::int64_t count, std::int64_t work, Visit visit) const;
  /// Calls visit(begin, end, worker) for ranges of [0, count), on all threads if the whole is large
  /// enough. `cost`: operations per element; ranges are multiples of `grain`.
  template <class Visit>
  void parallel_ranges(std::int64_t count, std::int64_t cost, std::int64_t grain,
                       Visit visit) const;
};

template <class Visit>
void Context::parallel_for(std::int64_t count, std::int64_t work, Visit visit) const {
  if (work >= parallel_threshold) return pool.run(count, visit);
  for (std::int64_t item = 0; item < count; ++item) visit(item, 0);
}

template <class Visit>
void Context::parallel_ranges(std::int64_t count, std::int64_t cost, std::int64_t grain,
                              Visit visit) const {
  constexpr std::int64_t min_parallel_cost = 100'000;
  if (count == 0) return;
  progress::advance();
  if (pool.threads() == 1 || count * cost < min_parallel_cost)
    return visit(std::int64_t{0}, count, 0);
  const std::int64_t ranges = std::int64_t{4} * pool.threads();
  const std::int64_t size = ((count + ranges - 1) / ranges + grain - 1) / grain * grain;
  pool.run((count + size - 1) / size, [&](std::int64_t range, int worker) {
    const std::int64_t begin = range * size, end = begin + size < count ? begin + size : count;
    visit(begin, end, worker);
  });
}

}  // namespace troupe::engine::ops::cpu
