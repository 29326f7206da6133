#include "algorithms/losses/token_masks.h"

#include <algorithm>
#include <tuple>

#include <cmath>
#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"

namespace troupe::algorithms {
namespace {

using engine::data::Experience;

double trained_mean(const std::vector<double>& x, const Experience& b) {
  double sum = 0, count = 0;
  for (std::size_t t = 0; t < x.size(); ++t)
    if (b.mask[t] != 0) {
      sum += x[t];
      count += 1;
    }
  return count > 0 ? sum / count : 0;
}

std::size_t share_of(const Experience& b, double share) {
  const auto trained = std::ranges::count_if(b.mask, [](float weight) { return weight != 0; });
  return std::max<std::size_t>(1, static_cast<std::size_t>(share * static_cast<double>(trained)));
}

struct Candidate {
  double key;
  std::uint64_t sample, place;
  std::size_t token;
  auto order() const { return std::tuple(key, sample, place); }
};

// Trained tokens for which `wanted` is true, with their samples and positions.
template <class Wanted, class Key>
std::vector<Candidate> candidates(const Experience& b, const Wanted& wanted, const Key& key) {
  check(b.sample_id.size() + 1 == b.offsets.size(), "covariance: sample_id is missing");
  std::vector<Candidate> out;
  for (std::size_t n = 0; n < b.sample_id.size(); ++n)
    for (auto t = static_cast<std::size_t>(b.offsets[n]);
         t < static_cast<std::size_t>(b.offsets[n + 1]); ++t) {
      const std::uint64_t place = t - static_cast<std::size_t>(b.offsets[n]);
      if (b.mask[t] != 0 && wanted(t))
        out.push_back({key(t, b.sample_id[n], place), b.sample_id[n], place, t});
    }
  return out;
}

// [T] 1 at the first `count` tokens in the order of their keys.
std::vector<double> first_of(std::vector<Candidate> all, std::size_t count, std::size_t tokens) {
  count = std::min(count, all.size());
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(count), {},
                            &Candidate::order);
  std::vector<double> out(tokens, 0);
  for (std::size_t i = 0; i < count; ++i) out[all[i].token] = 1;
  return out;
}

}  // namespace

std::vector<double> covariances(const std::vector<double>& advantage,
                                const std::vector<double>& logp, const Experience& b) {
  const double mean_advantage = trained_mean(advantage, b), mean_logp = trained_mean(logp, b);
  std::vector<double> out(logp.size(), 0);
  for (std::size_t t = 0; t < out.size(); ++t)
    if (b.mask[t] != 0) out[t] = (advantage[t] - mean_advantage) * (logp[t] - mean_logp);
  return out;
}

std::vector<double> greatest_covariances(const std::vector<double>& covariance, const Experience& b,
                                         double share) {
  const auto all = candidates(
      b, [](std::size_t) { return true; },
      [&](std::size_t t, std::uint64_t, std::uint64_t) { return -covariance[t]; });
  return first_of(all, share_of(b, share), covariance.size());
}

std::vector<double> drawn_covariances(const std::vector<double>& covariance,
                                      const std::vector<double>& taken, const Experience& b,
                                      double share, double low, double high) {
  const auto wanted = [&](std::size_t t) {
    return covariance[t] > low && covariance[t] < high && taken[t] == 0;
  };
  const auto draw = [](std::size_t, std::uint64_t sample, std::uint64_t place) {
    return uniform(0, sample, place);
  };
  return first_of(candidates(b, wanted, draw), share_of(b, share), covariance.size());
}

double quantile(std::vector<double> x, double q) {
  if (x.empty()) return 0;
  std::sort(x.begin(), x.end());
  const double at = q * static_cast<double>(x.size() - 1), below = std::floor(at);
  const auto i = static_cast<std::size_t>(below);
  return i + 1 < x.size() ? x[i] + (at - below) * (x[i + 1] - x[i]) : x.back();
}

std::vector<double> top_entropy_mask(std::span<const double> entropy, std::span<const float> mask,
                                     double share) {
  check(entropy.size() == mask.size(), "top_entropy_mask: entropies are missing");
  std::vector<double> trained;
  for (std::size_t t = 0; t < mask.size(); ++t)
    if (mask[t] != 0) trained.push_back(entropy[t]);
  const double threshold = quantile(std::move(trained), 1 - share);
  std::vector<double> out(mask.size(), 0);
  for (std::size_t t = 0; t < mask.size(); ++t)
    out[t] = mask[t] != 0 && entropy[t] >= threshold ? 1 : 0;
  return out;
}

}  // namespace troupe::algorithms
