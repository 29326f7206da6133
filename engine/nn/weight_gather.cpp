#include "engine/nn/weight_gather.h"

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::nn {

WeightGather::WeightGather(const ArenaShards& shards, const Tensor& values) {
  check(values.count() == shards.arena_count(), "WeightGather: arena of another model");
  // Buckets of f32 are exchanged in place. Those of bf16 need a copy each: two are in flight.
  const std::size_t max_started = values.dtype() == DType::f32 ? shards.buckets() : 2;
  for (std::size_t b = 0; b < shards.buckets(); ++b) {
    if (started_.size() == max_started) finish_until(started_.front().end);
    const auto [begin, end] = shards.range(b);
    auto& bucket = started_.emplace_back(values, begin, end, shards.counts(b), shards.dp().rank());
    bucket.started = shards.tensors().start_all_gather(bucket.mine, bucket.all, bucket.counts,
                                                       cat("weights from value ", begin, " on"));
  }
}

void WeightGather::finish_until(std::int64_t end) {
  while (!started_.empty() && started_.front().begin < end) {
    started_.front().started.wait();
    started_.pop_front();
  }
}

void WeightGather::finish() {
  while (!started_.empty()) finish_until(started_.back().end);
}

}  // namespace troupe::engine::nn
