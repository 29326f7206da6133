// Rounding to bf16 by chance, once for both CPU devices.
#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/base/random.h"
#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {
namespace {

/// Up with the probability of what is cut off: the largest values stay finite, and what is bf16
/// already stays as it is.
float rounded(float value, std::uint32_t chance) {
  if (!std::isfinite(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const float up = std::bit_cast<float>((bits + chance) & 0xffff0000U);
  return std::isfinite(up) ? up : std::bit_cast<float>(bits & 0xffff0000U);
}

/// Eight elements have a block of random words, half a word each.
void round_run(float* x, std::int64_t count, std::uint64_t number, const StochasticRounding& how) {
  std::array<std::uint32_t, 4> words{};
  for (std::int64_t i = 0; i < count; ++i, ++number) {
    if (i == 0 || number % 8 == 0)
      words = philox({low_word(number / 8), high_word(number / 8), how.stream, 0x5eedU},
                     {low_word(how.key), high_word(how.key)});
    x[i] = rounded(x[i], words[number % 8 / 2] >> (number % 2 * 16) & 0xffffU);
  }
}

}  // namespace

void HostDevice::round_to_bf16(Tensor& x, const StochasticRounding& how) {
  round_rows(x, how, 0, rows_of(x));
}

void HostDevice::round_rows(Tensor& x, const StochasticRounding& how, std::int64_t begin,
                            std::int64_t end) {
  const std::int64_t width = width_of(x);
  float* values = out(x);
  for (std::int64_t row = begin; row < end; ++row)
    round_run(values + row * width, width, static_cast<std::uint64_t>(how.first + row * how.pitch),
              how);
}

void FastDevice::round_to_bf16(Tensor& x, const StochasticRounding& how) {
  share(rows_of(x), 8 * width_of(x), 1,
        [&](std::int64_t begin, std::int64_t end, int) { round_rows(x, how, begin, end); });
}

}  // namespace troupe::engine::ops
