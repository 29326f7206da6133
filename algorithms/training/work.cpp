#include "algorithms/training/work.h"

namespace troupe::algorithms {

SequenceSizes sizes_of(const engine::data::Experience& batch) {
  SequenceSizes sizes{.sequences = static_cast<double>(batch.sequences())};
  for (std::size_t n = 0; n + 1 < batch.offsets.size(); ++n) {
    const double length = batch.offsets[n + 1] - batch.offsets[n];
    sizes.tokens += length;
    sizes.squares += length * length;
  }
  return sizes;
}

Processed processed_of(const engine::data::Experience& batch, std::optional<double> epoch) {
  return {static_cast<double>(batch.token_count()),
          static_cast<double>(batch.sequences() / batch.sequences_per_group), epoch};
}

}  // namespace troupe::algorithms
