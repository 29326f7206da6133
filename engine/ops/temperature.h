// The one place where a temperature becomes the factor that logits are multiplied by: sampler and
// trainer must use the same bits.
#pragma once

namespace troupe::engine::ops {

/// 0 (greedy) gives the model's own distribution.
inline float inverse_temperature(double temperature) {
  return temperature == 0 ? 1.0f : static_cast<float>(1.0 / temperature);
}

}  // namespace troupe::engine::ops
