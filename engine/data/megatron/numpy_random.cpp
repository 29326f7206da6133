#include "engine/data/megatron/numpy_random.h"

#include <bit>

namespace troupe::engine::data::megatron {

// Draws the bits that `maximum` has until they are no more than it.
std::uint64_t NumpyRandom::interval(std::uint64_t maximum) {
  if (maximum == 0) return 0;
  const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(maximum);
  std::uint64_t value = 0;
  do {
    value = generator_();
    if (maximum > 0xffffffffu) value = (value << 32) | generator_();
    value &= mask;
  } while (value > maximum);
  return value;
}

}  // namespace troupe::engine::data::megatron
