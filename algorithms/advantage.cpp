#include "algorithms/advantage.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"

namespace troupe::algorithms {
namespace {

struct Moments {
  std::int64_t count = 0;
  double mean = 0, deviation = 0;
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
  // Equal rewards have exactly their own mean; the rounding of sum / count would otherwise be divided by eps.
  m.mean = m.flat ? first : sum / static_cast<double>(m.count);
  double squares = 0;
  for (const double r : rewards) squares += std::isnan(r) ? 0 : (r - m.mean) * (r - m.mean);
  m.deviation = m.count > 1 ? std::sqrt(squares / static_cast<double>(m.count - 1)) : 0;
  return m;
}

// advantage(reward, moments of its group) for every reward that is a number.
template <class F>
Advantages by_group(std::span<const double> rewards, int group, F&& advantage) {
  check(group >= 1 && rewards.size() % static_cast<std::size_t>(group) == 0, "advantages: not a whole number of groups");
  const Moments all = moments(rewards);
  Advantages out;
  out.values.assign(rewards.size(), 0);
  out.failed = static_cast<std::int64_t>(rewards.size()) - all.count;
  out.mean = all.mean, out.deviation = all.deviation;
  for (std::size_t begin = 0; begin < rewards.size(); begin += static_cast<std::size_t>(group)) {
    const auto members = rewards.subspan(begin, static_cast<std::size_t>(group));
    const Moments m = moments(members);
    if (m.count == 0) continue;
    ++out.groups;
    out.flat += m.flat;
    out.group_deviation += m.deviation;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (!std::isnan(members[i])) out.values[begin + i] = advantage(members[i], m);
  }
  if (out.groups > 0) out.group_deviation /= static_cast<double>(out.groups);
  return out;
}

}  // namespace

Advantages group_advantages(std::span<const double> rewards, int group, GroupScale scale, double eps) {
  const double batch_deviation = moments(rewards).deviation;
  return by_group(rewards, group, [&](double reward, const Moments& m) {
    const double distance = reward - m.mean;
    if (scale == GroupScale::none || distance == 0) return distance;
    return distance / ((scale == GroupScale::group ? m.deviation : batch_deviation) + eps);
  });
}

Advantages leave_one_out(std::span<const double> rewards, int group) {
  return by_group(rewards, group, [](double reward, const Moments& m) {
    if (m.count < 2) return 0.0;
    const auto n = static_cast<double>(m.count);
    return (reward - m.mean) * n / (n - 1);  // = R - (sum - R) / (n - 1)
  });
}

std::vector<float> per_token(std::span<const double> values, const std::vector<std::int32_t>& offsets) {
  check(offsets.size() == values.size() + 1, "per_token: one number per sequence is needed");
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(offsets.back()));
  for (std::size_t n = 0; n < values.size(); ++n) out.resize(static_cast<std::size_t>(offsets[n + 1]), static_cast<float>(values[n]));
  return out;
}

}  // namespace troupe::algorithms
