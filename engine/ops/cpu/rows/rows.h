// Operations on rows: copies, biases, rotations. Arguments are those of Device, already checked.
#pragma once

#include <span>

#include "engine/ops/cpu/context/context.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu {

void gather_rows(const Context& context, const Tensor& from, std::span<const std::int32_t> rows,
                 Tensor& to);
void scatter_add_rows(const Context& context, const Tensor& from,
                      std::span<const std::int32_t> rows, Tensor& table);
void add_bias(const Context& context, Tensor& y, const Tensor& bias);
void bias_backward(const Context& context, const Tensor& dy, Tensor& dbias);
void rope(const Context& context, Tensor& x, std::span<const std::int32_t> positions,
          const Tensor& cos, const Tensor& sin, int heads, bool inverse);

}  // namespace troupe::engine::ops::cpu
