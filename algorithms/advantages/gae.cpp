#include "algorithms/advantages/gae.h"

#include "engine/base/errors/check.h"

namespace troupe::algorithms {

Gae gae(std::span<const double> rewards, std::span<const double> values,
        std::span<const float> mask, const GaeOptions& options, const AfterEnd& beyond) {
  const std::size_t length = rewards.size();
  check(values.size() == length && mask.size() == length,
        "gae: one reward, value and weight per token is needed");
  Gae out{std::vector<double>(length), std::vector<double>(length)};
  double next_value = beyond.value, next_advantage = beyond.ends ? beyond.reward - beyond.value : 0;
  for (std::size_t t = length; t-- > 0;) {
    const bool trained = mask[t] != 0;
    if (!trained && options.untrained == Untrained::carry) {
      out.advantages[t] = next_advantage;
      out.returns[t] = next_advantage + values[t];
      continue;
    }
    const double value = trained ? values[t] : 0, reward = trained ? rewards[t] : 0;
    next_advantage = reward + options.gamma * next_value - value +
                     options.gamma * options.lambda * next_advantage;
    next_value = value;
    out.advantages[t] = next_advantage;
    out.returns[t] = next_advantage + value;
  }
  return out;
}

}  // namespace troupe::algorithms
