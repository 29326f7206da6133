#include "engine/data/megatron/blend.h"

#include <algorithm>
#include <numeric>

#include "engine/base/check.h"

namespace troupe::engine::data::megatron {
namespace {

// Counts of samples, and the next one. A dataset whose limit is reached is not used any more.
class Blend {
 public:
  Blend(std::vector<double> weights, std::vector<std::int64_t> limits)
      : weights_(std::move(weights)), limits_(std::move(limits)), counts_(weights_.size()) {}

  BlendedSample next() {
    const double position = std::max(1.0, static_cast<double>(taken_++));
    std::size_t chosen = weights_.size();
    double largest = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (!limits_.empty() && counts_[i] >= limits_[i]) continue;
      const double behind = weights_[i] * position - static_cast<double>(counts_[i]);
      if (chosen == weights_.size() || behind > largest) {
        chosen = i;
        largest = behind;
      }
    }
    check(chosen < weights_.size(), "a dataset with samples left");
    return {static_cast<std::int32_t>(chosen), counts_[chosen]++};
  }

 private:
  std::vector<double> weights_;
  std::vector<std::int64_t> limits_;  // empty: none
  std::vector<std::int64_t> counts_;
  std::int64_t taken_ = 0;
};

std::vector<BlendedSample> drawn(Blend blend, std::int64_t size) {
  std::vector<BlendedSample> out;
  out.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) out.push_back(blend.next());
  return out;
}

}  // namespace

std::vector<double> normalized(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> out;
  for (const double weight : weights) out.push_back(weight / sum);
  return out;
}

std::vector<BlendedSample> blend_by_weight(const std::vector<double>& weights, std::int64_t size) {
  return drawn(Blend(weights, {}), size);
}

std::vector<BlendedSample> blend_all(const std::vector<std::int64_t>& sizes) {
  const auto all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  std::vector<double> weights;
  for (const std::int64_t size : sizes)
    weights.push_back(static_cast<double>(size) / static_cast<double>(all));
  return drawn(Blend(std::move(weights), sizes), all);
}

}  // namespace troupe::engine::data::megatron
