#include "engine/ops/cpu/reference/operand.h"

#include "engine/ops/cpu/host_buffer.h"

namespace troupe::engine::ops::cpu::reference {

std::vector<double> operand(const float* x, std::int64_t count, std::int64_t stride,
                            Precision precision) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) {
    value = precision == Precision::bf16 ? from_bf16(to_bf16(*x)) : *x;
    x += stride;
  }
  return values;
}

double rounded(double x, Precision precision) {
  return precision == Precision::bf16 ? double{from_bf16(to_bf16(static_cast<float>(x)))} : x;
}

}  // namespace troupe::engine::ops::cpu::reference
