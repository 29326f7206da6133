#include "engine/nn/weight_gather.h"

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::engine::nn {

WeightGather::WeightGather(ops::Device& device, const ArenaShards& shards, const Tensor& values) {
  check(values.count() == shards.arena_count(), "WeightGather: arena of another model");
  // Buckets of f32 are exchanged in place. Those of bf16 need a copy each: two are in flight.
  const std::size_t max_started = values.dtype() == DType::f32 ? shards.buckets() : 2;
  for (std::size_t b = 0; b < shards.buckets(); ++b) {
    if (started_.size() == max_started) finish_until(started_.front().end);
    const auto [begin, end] = shards.range(b);
    auto& bucket =
        started_.emplace_back(device, values, begin, end, shards.counts(b), shards.dp().rank());
    bucket.started = shards.dp().start_all_gather(
        std::as_bytes(bucket.mine), std::as_writable_bytes(bucket.host.values()),
        bytes_of(bucket.counts), cat("weights from value ", begin, " on"));
  }
}

void WeightGather::finish_until(std::int64_t end) {
  while (!started_.empty() && started_.front().begin < end) {
    started_.front().finish();
    started_.pop_front();
  }
}

void WeightGather::finish() {
  while (!started_.empty()) finish_until(started_.back().end);
}

}  // namespace troupe::engine::nn
