#include "algorithms/rollout/finished_samples.h"

#include <algorithm>

namespace troupe::algorithms {
namespace {

bool fresh(const FinishedSample& sample, std::int64_t eta) {
  return std::ranges::all_of(sample.completion.versions, [&](const auto& run) {
    return static_cast<std::int64_t>(run.version) >= sample.batch - eta;
  });
}

}  // namespace

void FinishedSamples::add(std::int64_t batch,
                          const std::vector<actors::protocol::Completion>& completions) {
  for (const auto& completion : completions) batches_[batch][completion.sample_id] = completion;
}

const actors::protocol::Completion* FinishedSamples::find(std::int64_t batch,
                                                          std::uint64_t sample_id) const {
  const auto of_batch = batches_.find(batch);
  if (of_batch == batches_.end()) return nullptr;
  const auto found = of_batch->second.find(sample_id);
  return found == of_batch->second.end() ? nullptr : &found->second;
}

void FinishedSamples::drop_before(std::int64_t batch) {
  batches_.erase(batches_.begin(), batches_.lower_bound(batch));
}

std::uint64_t FinishedSamples::count() const {
  std::uint64_t count = 0;
  for (const auto& [batch, samples] : batches_) count += samples.size();
  return count;
}

std::vector<FinishedSample> FinishedSamples::all() const {
  std::vector<FinishedSample> out;
  for (const auto& [batch, samples] : batches_)
    for (const auto& [id, completion] : samples) out.push_back({batch, completion});
  return out;
}

void FinishedSamples::restore(std::vector<FinishedSample> samples, std::int64_t trained,
                              std::int64_t eta) {
  for (auto& sample : samples) {
    if (sample.batch < trained || !fresh(sample, eta)) continue;
    const std::uint64_t id = sample.completion.sample_id;
    batches_[sample.batch][id] = std::move(sample.completion);
  }
}

}  // namespace troupe::algorithms
