// The one place where a temperature becomes the factor that logits are multiplied by: sampler and trainer must use the same bits.
#pragma once

namespace troupe::engine::ops {

inline float inverse_temperature(double temperature) { return static_cast<float>(1.0 / temperature); }

}  // namespace troupe::engine::ops
