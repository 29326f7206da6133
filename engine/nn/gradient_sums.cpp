#include "engine/nn/gradient_sums.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::nn {
namespace {

/// Buckets in flight: one is exchanged while the next one starts. More would need more memory.
constexpr std::size_t max_started = 2;

/// Lengths of `count` values divided evenly, the last pieces shorter.
std::vector<std::size_t> even_counts(std::int64_t count, int ranks) {
  const std::int64_t piece = (count + ranks - 1) / ranks;
  std::vector<std::size_t> counts;
  for (std::int64_t left = count, r = 0; r < ranks; ++r) {
    counts.push_back(static_cast<std::size_t>(std::min(piece, left)));
    left -= std::min(piece, left);
  }
  return counts;
}

}  // namespace

GradientSums::GradientSums(Parameters& trained, parallel::Communicator& replicas,
                           const ArenaShards* shards, std::int64_t bucket)
    : parameters_(trained),
      replicas_(collectives::make_tensor_group(trained.device(), replicas)),
      gathers_(shards == nullptr) {
  check(shards == nullptr || shards->arena_count() == trained.count(),
        "GradientSums: shards of another model");
  if (shards != nullptr) {
    for (std::size_t b = 0; b < shards->buckets(); ++b) {
      const auto [begin, end] = shards->range(b);
      buckets_.push_back({begin, end, shards->counts(b)});
    }
  } else {
    for (std::int64_t begin = 0; begin < trained.count(); begin += bucket) {
      const std::int64_t end = std::min(begin + bucket, trained.count());
      buckets_.push_back({begin, end, even_counts(end - begin, replicas.size())});
    }
  }
  waiting_ = buckets_.size();
}

void GradientSums::start_from(std::int64_t begin) {
  while (waiting_ > 0 && buckets_[waiting_ - 1].begin >= begin) start(buckets_[--waiting_]);
}

void GradientSums::finish() {
  start_from(0);
  while (!started_.empty()) finish_first();
  waiting_ = buckets_.size();
}

/// Gradients that no pass has written count as 0.
void GradientSums::complete(const Bucket& bucket) {
  std::int64_t at = 0;
  for (const auto& parameter : parameters_.all()) {
    const std::int64_t begin = at;
    at += parameter.value.count();
    if (begin < bucket.end && at > bucket.begin) parameter.complete_gradient(parameters_.device());
  }
}

void GradientSums::start(const Bucket& bucket) {
  if (started_.size() == max_started) finish_first();
  complete(bucket);
  auto& values = started_.emplace_back(parameters_.gradient_arena(), bucket.begin, bucket.end,
                                       bucket.counts, replicas_->rank());
  values.started = replicas_->start_reduce_scatter(
      values.all, values.counts, values.mine, cat("gradients from value ", bucket.begin, " on"));
}

void GradientSums::finish_first() {
  BucketValues& values = started_.front();
  values.started.wait();
  if (gathers_) {
    values.started =
        replicas_->start_all_gather(values.mine, values.all, values.counts,
                                    cat("sums of the gradients from value ", values.begin, " on"));
    values.started.wait();
  }
  started_.pop_front();
}

void reduce_scatter_gradients(Parameters& trained, const ArenaShards& shards) {
  GradientSums(trained, shards.dp(), &shards).finish();
}

std::int64_t complete_from(const Parameters& trained, std::span<const std::string> complete) {
  std::int64_t from = trained.count();
  for (auto parameter = trained.all().rbegin(); parameter != trained.all().rend(); ++parameter) {
    const bool among = std::ranges::any_of(
        complete, [&](const std::string& prefix) { return parameter->name.starts_with(prefix); });
    if (!among || parameter->shard.overlaps || (parameter->state && parameter->state->lookup))
      return from;
    from -= parameter->value.count();
  }
  return from;
}

}  // namespace troupe::engine::nn
