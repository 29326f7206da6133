#include "algorithms/advantages/advantage.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/errors/check.h"

namespace troupe::algorithms {
namespace {

struct Moments {
  std::int64_t count = 0;
  double mean = 0, std_dev = 0;
  bool flat = true;
};

Moments moments(std::span<const double> rewards) {
  Moments m;
  double sum = 0, first = 0;
  for (const double r : rewards) {
    if (std::isnan(r)) continue;
    if (m.count++ == 0) first = r;
    m.flat = m.flat && r == first;
    sum += r;
  }
  if (m.count == 0) return m;
  // Equal rewards have exactly their own mean; the rounding of sum / count would otherwise be
  // divided by eps.
  m.mean = m.flat ? first : sum / static_cast<double>(m.count);
  double squares = 0;
  for (const double r : rewards) squares += std::isnan(r) ? 0 : (r - m.mean) * (r - m.mean);
  m.std_dev = m.count > 1 ? std::sqrt(squares / static_cast<double>(m.count - 1)) : 0;
  return m;
}

// advantage(reward, moments of its group) for every reward that is a number.
template <class F>
Advantages by_group(std::span<const double> rewards, int group, F&& advantage) {
  check(group >= 1 && rewards.size() % static_cast<std::size_t>(group) == 0,
        "advantages: not a whole number of groups");
  const Moments all = moments(rewards);
  Advantages out;
  out.values.assign(rewards.size(), 0);
  out.failed = static_cast<std::int64_t>(rewards.size()) - all.count;
  out.mean = all.mean;
  out.std_dev = all.std_dev;
  for (std::size_t begin = 0; begin < rewards.size(); begin += static_cast<std::size_t>(group)) {
    const auto members = rewards.subspan(begin, static_cast<std::size_t>(group));
    const Moments m = moments(members);
    if (m.count == 0) continue;
    ++out.groups;
    out.flat += m.flat;
    out.group_std_dev += m.std_dev;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (!std::isnan(members[i])) out.values[begin + i] = advantage(members[i], m);
  }
  if (out.groups > 0) out.group_std_dev /= static_cast<double>(out.groups);
  return out;
}

// advantage(members of the group, which of them) for every reward that is a number.
template <class F>
Advantages by_member(std::span<const double> rewards, int group, F&& advantage) {
  Advantages out = by_group(rewards, group, [](double, const Moments&) { return 0.0; });
  const auto size = static_cast<std::size_t>(group);
  for (std::size_t n = 0; n < rewards.size(); ++n)
    if (!std::isnan(rewards[n]))
      out.values[n] = advantage(rewards.subspan(n / size * size, size), n % size);
  return out;
}

}  // namespace

Advantages group_advantages(std::span<const double> rewards, int group, GroupScale scale,
                            double eps) {
  const double batch_std_dev = moments(rewards).std_dev;
  return by_group(rewards, group, [&](double reward, const Moments& m) {
    const double distance = reward - m.mean;
    if (scale == GroupScale::none || distance == 0) return distance;
    return distance / ((scale == GroupScale::group ? m.std_dev : batch_std_dev) + eps);
  });
}

Advantages leave_one_out(std::span<const double> rewards, int group) {
  return by_group(rewards, group, [](double reward, const Moments& m) {
    if (m.count < 2) return 0.0;
    const auto n = static_cast<double>(m.count);
    return (reward - m.mean) * n / (n - 1);  // = R - (sum - R) / (n - 1)
  });
}

Advantages leave_one_out_scaled(std::span<const double> rewards, int group, double eps) {
  return by_member(rewards, group, [&](std::span<const double> members, std::size_t own) {
    std::vector<double> others(members.begin(), members.end());
    others[own] = std::nan("");
    const Moments m = moments(others);
    if (m.count == 0) return 0.0;
    const double distance = members[own] - m.mean;
    return m.std_dev > 0 ? distance / (m.std_dev + eps) : distance;
  });
}

Advantages pass_at_k(std::span<const double> rewards, int group, double eps) {
  return by_member(rewards, group, [&](std::span<const double> members, std::size_t own) {
    const Moments m = moments(members);
    double second = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < members.size(); ++i)
      if (i != own && !std::isnan(members[i])) second = std::max(second, members[i]);
    return m.count > 1 && members[own] > second ? (members[own] - second) / (m.std_dev + eps) : 0.0;
  });
}

Advantages length_weighted_baseline(std::span<const double> rewards,
                                    std::span<const double> lengths, int group) {
  check(lengths.size() == rewards.size(),
        "length_weighted_baseline: one length per sample is needed");
  return by_member(rewards, group, [&](std::span<const double> members, std::size_t own) {
    const auto* of = lengths.data() + (members.data() - rewards.data());
    double weighed = 0, length = 0;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (!std::isnan(members[i])) {
        weighed += of[i] * members[i];
        length += of[i];
      }
    return length > 0 ? members[own] - weighed / length : 0.0;
  });
}

Advantages group_policy_gradient(std::span<const double> rewards, int group) {
  double all = 0, other_than_zero = 0;
  for (const double r : rewards)
    if (!std::isnan(r)) {
      all += 1;
      other_than_zero += r != 0 ? 1 : 0;
    }
  const double alpha = all / std::max(other_than_zero, 1.0);
  return by_group(rewards, group,
                  [&](double reward, const Moments& m) { return alpha * (reward - m.mean); });
}

Advantages relative_to_mean(std::span<const double> rewards, int group) {
  return by_group(rewards, group, [](double reward, const Moments& m) {
    return m.mean == 0 ? 0 : (reward - m.mean) / m.mean;
  });
}

Advantages against_baseline(std::span<const double> rewards, std::span<const double> baselines,
                            int group) {
  check(baselines.size() * static_cast<std::size_t>(group) == rewards.size(),
        "against_baseline: one baseline per group is needed");
  return by_member(rewards, group, [&](std::span<const double> members, std::size_t own) {
    const double baseline = baselines[static_cast<std::size_t>(members.data() - rewards.data()) /
                                      static_cast<std::size_t>(group)];
    return std::isnan(baseline) ? 0.0 : members[own] - baseline;
  });
}

Advantages normalise_then_sum(std::span<const double> rewards,
                              const std::vector<std::vector<double>>& parts,
                              std::span<const double> weights, int group, double eps) {
  check(parts.size() == weights.size(), "normalise_then_sum: one weight per part is needed");
  Advantages out = by_group(rewards, group, [](double, const Moments&) { return 0.0; });
  std::vector<double> sums(rewards.size(), 0);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const auto scaled = group_advantages(parts[k], group, GroupScale::group, eps).values;
    // A part that a sample does not have counts as 0, as in TRL (nansum).
    for (std::size_t n = 0; n < sums.size(); ++n)
      if (!std::isnan(scaled[n])) sums[n] += weights[k] * scaled[n];
  }
  for (std::size_t n = 0; n < sums.size(); ++n)
    if (std::isnan(rewards[n])) sums[n] = rewards[n];
  out.values = normalised_over_batch(sums, eps);
  return out;
}

std::vector<double> normalised_over_batch(std::span<const double> x, double eps) {
  return group_advantages(x, static_cast<int>(std::max<std::size_t>(x.size(), 1)),
                          GroupScale::group, eps)
      .values;
}

std::vector<double> returns_to_go(std::span<const double> rewards, std::span<const float> mask,
                                  double gamma) {
  check(rewards.size() == mask.size(), "returns_to_go: one reward per token is needed");
  std::vector<double> out(rewards.size(), 0);
  double behind = 0;
  for (std::size_t t = rewards.size(); t-- > 0;)
    if (mask[t] != 0) out[t] = behind = rewards[t] + gamma * behind;
  return out;
}

std::vector<float> per_token(std::span<const double> values,
                             const std::vector<std::int32_t>& offsets) {
  check(offsets.size() == values.size() + 1, "per_token: one number per sequence is needed");
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(offsets.back()));
  for (std::size_t n = 0; n < values.size(); ++n)
    out.resize(static_cast<std::size_t>(offsets[n + 1]), static_cast<float>(values[n]));
  return out;
}

}  // namespace troupe::algorithms
