#include "engine/nn/bucket_values.h"

#include <utility>

#include "engine/parallel/blocks.h"

namespace troupe::engine::nn {

BucketValues::BucketValues(const Tensor& arena, std::int64_t first, std::int64_t last,
                           std::vector<std::size_t> lengths, int rank)
    : begin(first), end(last), counts(std::move(lengths)), all(arena.flat(first, last)) {
  const auto at = static_cast<std::int64_t>(parallel::block_begin(counts, rank)),
             size = static_cast<std::int64_t>(counts[static_cast<std::size_t>(rank)]);
  mine = all.flat(at, at + size);
}

}  // namespace troupe::engine::nn
