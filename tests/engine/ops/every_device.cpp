#include "tests/engine/ops/every_device.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/errors/error.h"
#include "engine/base/random/random.h"
#include "engine/ops/cpu/cpu_options.h"

namespace troupe::engine::ops {

const std::vector<DeviceCase>& device_cases() {
  static const std::vector<DeviceCase> cases = {{"reference", true, "", 1},
                                                {"baseline_1", false, "baseline", 1},
                                                {"avx2_1", false, "avx2", 1},
                                                {"avx2_2", false, "avx2", 2},
                                                {"avx512_1", false, "avx512", 1},
                                                {"avx512_2", false, "avx512", 2},
                                                {"avx512_bf16_1", false, "avx512_bf16", 1},
                                                {"avx512_bf16_2", false, "avx512_bf16", 2}};
  return cases;
}

std::unique_ptr<Device> make(const DeviceCase& which) {
  if (which.reference) return make_reference_device();
  try {
    return make_cpu_device({.threads = which.threads, .isa = which.isa});
  } catch (const Failure& failure) {
    if (failure.error().code != Errc::unsupported) throw;
    return nullptr;
  }
}

Floats random_floats(std::int64_t count, std::uint64_t seed) {
  Floats values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(2 * uniform(seed, 7, i) - 1);
  return values;
}

Doubles as_doubles(const Floats& x) {
  return {x.begin(), x.end()};
}

double relative_error(const Floats& actual, const Doubles& expected) {
  if (actual.size() != expected.size()) return 1e300;
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!std::isfinite(actual[i])) return 1e300;
    worst = std::max(worst, std::abs(double{actual[i]} - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return worst / largest;
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

Floats slice(const Floats& x, std::int64_t begin, std::int64_t end) {
  return {x.begin() + begin, x.begin() + end};
}

}  // namespace troupe::engine::ops
