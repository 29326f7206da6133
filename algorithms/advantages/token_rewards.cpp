#include "algorithms/advantages/token_rewards.h"

#include <algorithm>
#include <cmath>

#include "engine/base/errors/check.h"

namespace troupe::algorithms {

double shaped(double score, bool ended, const ScoreShape& shape) {
  score *= shape.scale;
  if (shape.clip > 0) score = std::clamp(score, -shape.clip, shape.clip);
  return ended ? score : score - shape.missing_eos_penalty;
}

std::vector<double> credited(std::span<const double> steps, Credit credit, double temperature) {
  std::vector<double> out(steps.begin(), steps.end());
  if (credit == Credit::sum || steps.empty()) return out;
  check(temperature > 0, "credited: a temperature above 0 is needed");
  const double minimum = *std::ranges::min_element(steps);
  double total = 0;
  for (const double reward : steps) total += std::exp((minimum - reward) / temperature);
  for (double& reward : out) reward *= std::exp((minimum - reward) / temperature) / total;
  return out;
}

std::int64_t last_trained(std::span<const float> mask) {
  for (std::size_t t = mask.size(); t-- > 0;)
    if (mask[t] != 0) return static_cast<std::int64_t>(t);
  return -1;
}

std::int64_t add_steps(std::span<double> rewards, std::span<const float> mask,
                       std::span<const std::int32_t> ends, std::span<const double> steps) {
  check(ends.size() == steps.size() && mask.size() == rewards.size(),
        "add_steps: one end per step and one weight per token is needed");
  std::int64_t dropped = 0;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    check(ends[k] >= 0 && static_cast<std::size_t>(ends[k]) < rewards.size(),
          "add_steps: a step ends outside its sequence");
    const auto at = last_trained(mask.first(static_cast<std::size_t>(ends[k]) + 1));
    if (at < 0)
      ++dropped;
    else
      rewards[static_cast<std::size_t>(at)] += steps[k];
  }
  return dropped;
}

double overlong_penalty(double length, double allowed, const Shaping& shaping) {
  if (shaping.overlong_buffer <= 0) return 0;
  double exceeds = length - (allowed - shaping.overlong_buffer);
  if (shaping.overlong_capped) exceeds = std::min(exceeds, shaping.overlong_buffer);
  return exceeds > 0 ? -exceeds / shaping.overlong_buffer * shaping.overlong_factor : 0;
}

double shaped_reward(double reward, double length, double allowed, bool truncated,
                     const Shaping& shaping) {
  if (truncated)
    reward =
        shaping.truncated_scale < 0 ? shaping.truncated_scale : shaping.truncated_scale * reward;
  return shaped(reward + overlong_penalty(length, allowed, shaping), !truncated, shaping.score);
}

}  // namespace troupe::algorithms
