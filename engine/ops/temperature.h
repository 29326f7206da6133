// Conversion of a temperature to the factor of logits. Sampler and trainer must use the same bits.
#pragma once

namespace troupe::engine::ops {

/// Returns 1 / temperature, or 1 for temperature 0 (greedy).
inline float inverse_temperature(double temperature) {
  return temperature == 0 ? 1.0f : static_cast<float>(1.0 / temperature);
}

}  // namespace troupe::engine::ops
