// Operands of the reference device.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ops/types.h"

namespace troupe::engine::ops::cpu::reference {

/// Returns x as doubles, rounded to `precision` first. Elements have stride `stride`.
std::vector<double> operand(const float* x, std::int64_t count, std::int64_t stride,
                            Precision precision);
/// Rounds a value that becomes an operand.
double rounded(double x, Precision precision);

}  // namespace troupe::engine::ops::cpu::reference
