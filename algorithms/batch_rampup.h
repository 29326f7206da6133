// Growing batches at the start of pretraining.
#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe::algorithms {

/// Megatron-LM's --rampup-batch-size (megatron/training, num_microbatches_calculator.py): batches
/// of `start` samples grow by `increment` to the full size while `samples` samples are consumed.
struct BatchRampup {
  std::int64_t start = 0;  ///< 0: every batch is full
  std::int64_t increment = 0, samples = 0;

  /// Size of the batch that follows `consumed` samples.
  std::int64_t size(std::int64_t consumed, std::int64_t full) const {
    if (start <= 0 || start >= full || consumed > samples || increment <= 0) return full;
    const std::int64_t increments = (full - start) / increment;
    if (increments == 0 || samples == 0) return full;
    const double interval = static_cast<double>(samples) / static_cast<double>(increments);
    return std::min(full, start + increment * static_cast<std::int64_t>(
                                                  static_cast<double>(consumed) / interval));
  }
  /// Samples of the first `steps` batches.
  std::int64_t consumed(std::int64_t steps, std::int64_t full) const {
    std::int64_t sum = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::int64_t next = size(sum, full);
      if (next == full && (start <= 0 || sum > samples)) return sum + (steps - step) * full;
      sum += next;
    }
    return sum;
  }
};

}  // namespace troupe::algorithms
