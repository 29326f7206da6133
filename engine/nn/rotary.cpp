#include "engine/nn/rotary.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace troupe::engine::nn {

RotaryTable::RotaryTable(ops::Device& device, std::vector<double> inverse_frequencies)
    : device_(&device), inverse_frequencies_(std::move(inverse_frequencies)) {}

void RotaryTable::reserve(std::int64_t count) {
  if (count <= count_) return;
  count_ = std::max<std::int64_t>(256, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count))));
  const std::size_t half = inverse_frequencies_.size();
  std::vector<float> cosines, sines;
  cosines.reserve(static_cast<std::size_t>(count_) * half);
  sines.reserve(static_cast<std::size_t>(count_) * half);
  for (std::int64_t position = 0; position < count_; ++position) {
    for (const double frequency : inverse_frequencies_) {
      // transformers multiplies in f32, also for models of other types: the angle is rounded as it rounds it
      const float angle = static_cast<float>(position) * static_cast<float>(frequency);
      cosines.push_back(static_cast<float>(std::cos(static_cast<double>(angle))));
      sines.push_back(static_cast<float>(std::sin(static_cast<double>(angle))));
    }
  }
  const Shape shape{count_, static_cast<std::int64_t>(half)};
  cos_ = ops::from_host(*device_, shape, cosines);
  sin_ = ops::from_host(*device_, shape, sines);
}

}  // namespace troupe::engine::nn
