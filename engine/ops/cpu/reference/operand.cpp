#include "engine/ops/cpu/reference/operand.h"

#include "engine/ops/memory/host_buffer.h"
#include "engine/ops/shapes.h"

namespace troupe::engine::ops::cpu::reference {

std::vector<double> operand(const float* x, std::int64_t count, std::int64_t stride,
                            Precision precision) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) {
    value = precision == Precision::f32 ? *x : rounded(*x, precision);
    x += stride;
  }
  return values;
}

double rounded(double x, Precision precision) {
  const auto value = static_cast<float>(x);
  switch (precision) {
    case Precision::f32:
      return x;
    case Precision::bf16:
      return from_bf16(to_bf16(value));
    case Precision::f16:
      return to_f16_value(value);
  }
  return x;
}

}  // namespace troupe::engine::ops::cpu::reference
