#include "engine/ops/cpu/reference/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/ops/cpu/host_buffer.h"
#include "engine/ops/cpu/reference/operand.h"
#include "engine/ops/cpu/shapes.h"

namespace troupe::engine::ops::cpu::reference {
namespace {

// Returns NaN unless all values are finite.
float largest_of(const float* x, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(x[i]));
  }
  return largest;
}

void pack_row(const float* x, std::int64_t count, std::byte* to) {
  const float largest = largest_of(x, count), factor = largest >= 0x1p-100F ? 127 / largest : 0;
  const float scale = largest < 0x1p-100F ? 0 : largest / 127;
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = static_cast<std::byte>(
        factor > 0 ? static_cast<std::int8_t>(std::nearbyint(x[i] * factor)) : 0);
  std::memcpy(to + count, &scale, sizeof(scale));
}

// Returns B [N, K].
std::vector<double> right_operand(const Tensor& b, Gemm how, std::int64_t n, std::int64_t k) {
  if (!is_packed(b)) return operand(data(b), n * k, 1, how.precision);
  check(b.shape() == packed_shape(b.dtype(), n, k), "gemm: the packed weight has another shape");
  std::vector<double> values;
  for (std::int64_t row = 0; row < n; ++row) {
    const std::byte* at =
        raw(b) + row * b.shape()[1] * static_cast<std::int64_t>(bytes_of(b.dtype()));
    float scale = 0;
    if (b.dtype() == DType::int8_packed) std::memcpy(&scale, at + k, sizeof(scale));
    for (std::int64_t i = 0; i < k; ++i) {
      if (b.dtype() == DType::int8_packed)
        values.push_back(static_cast<double>(scale) * static_cast<std::int8_t>(at[i]));
      else
        values.push_back(from_bf16(reinterpret_cast<const std::uint16_t*>(at)[i]));
    }
  }
  return values;
}

}  // namespace

Shape packed_shape(DType type, std::int64_t n, std::int64_t k) {
  check(type == DType::bf16_packed || type == DType::int8_packed,
        "pack: a weight is packed in bf16 or int8");
  return type == DType::bf16_packed ? Shape{n, k} : Shape{n, k + 4};
}

void pack_weight(const Tensor& weight, Tensor& packed) {
  const std::int64_t rows = rows_of(weight), width = width_of(weight);
  const float* from = data(weight);
  if (packed.dtype() == DType::bf16_packed) {
    std::transform(from, from + weight.count(), reinterpret_cast<std::uint16_t*>(raw(packed)),
                   to_bf16);
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row)
    pack_row(from + row * width, width, raw(packed) + row * packed.shape()[1]);
}

void gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) {
  const auto [m, n, k] = gemm_sizes(a, b, c, how);
  const std::vector<double> right = right_operand(b, how, n, k);
  const std::int64_t b_step = how.transpose_b ? 1 : n;  // between consecutive k
  const std::int64_t b_next = how.transpose_b ? k : 1;  // between consecutive n
  for (std::int64_t i = 0; i < m; ++i) {
    const std::vector<double> left =
        operand(data(a) + (how.transpose_a ? i : i * k), k, how.transpose_a ? m : 1, how.precision);
    float* result = mutable_data(c) + i * n;
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = how.accumulate ? result[j] : 0.0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += left[static_cast<std::size_t>(l)] *
               right[static_cast<std::size_t>(j * b_next + l * b_step)];
      result[j] = static_cast<float>(sum);
    }
  }
}

}  // namespace troupe::engine::ops::cpu::reference
