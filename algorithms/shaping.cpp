#include "algorithms/shaping.h"

#include <algorithm>

namespace troupe::algorithms {

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
