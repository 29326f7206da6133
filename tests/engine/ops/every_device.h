// The devices of the tests of operations, and conversions to and from them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/ops/device.h"

namespace troupe::engine::ops {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Rows = std::vector<std::int32_t>;

struct DeviceCase {
  std::string name;
  bool reference;
  const char* isa;
  int threads;
};
const std::vector<DeviceCase>& device_cases();
/// Names the cases for gtest.
inline void PrintTo(const DeviceCase& which, std::ostream* to) {
  *to << which.name;
}

/// Returns null if this processor lacks the instruction set.
std::unique_ptr<Device> make(const DeviceCase& which);

class OnEveryDevice : public testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    device_ = make(GetParam());
    if (!device_) GTEST_SKIP() << "this processor does not have " << GetParam().isa;
  }
  Device& device() { return *device_; }
  Tensor put(Shape shape, const Floats& values) { return from_host(*device_, shape, values); }
  Tensor filled(Shape shape, float value) {
    Tensor x = device_->empty(shape);
    device_->fill(x, value);
    return x;
  }
  Floats get(const Tensor& x) { return to_host(*device_, x); }

 private:
  std::unique_ptr<Device> device_;
};

inline std::string case_name(const testing::TestParamInfo<DeviceCase>& info) {
  return info.param.name;
}

/// Values in [-1, 1), the same for the same seed.
Floats random_floats(std::int64_t count, std::uint64_t seed);
Doubles as_doubles(const Floats& x);
/// Largest |actual - expected| / (largest |expected| + 1e-30).
double relative_error(const Floats& actual, const Doubles& expected);
bool same_bits(const Floats& a, const Floats& b);
Floats slice(const Floats& x, std::int64_t begin, std::int64_t end);

}  // namespace troupe::engine::ops
