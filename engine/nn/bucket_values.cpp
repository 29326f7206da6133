#include "engine/nn/bucket_values.h"

#include <utility>

#include "engine/parallel/blocks.h"

namespace troupe::engine::nn {

BucketValues::BucketValues(ops::Device& device, const Tensor& arena, std::int64_t first,
                           std::int64_t last, std::vector<std::size_t> lengths, int rank)
    : begin(first), end(last), counts(std::move(lengths)), host(device, arena.flat(first, last)) {
  mine = host.values().subspan(parallel::block_begin(counts, rank),
                               counts[static_cast<std::size_t>(rank)]);
}

void BucketValues::finish() {
  started.wait();
  host.store();
}

std::vector<std::size_t> bytes_of(std::span<const std::size_t> counts) {
  std::vector<std::size_t> bytes;
  for (const std::size_t count : counts) bytes.push_back(count * sizeof(float));
  return bytes;
}

}  // namespace troupe::engine::nn
