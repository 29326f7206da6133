#include "engine/ops/cpu/reference.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/ops/cpu/access.h"
#include "engine/ops/cpu/kernels.h"

namespace troupe::engine::ops {
namespace {

using Array = Eigen::Map<Eigen::ArrayXf>;
using ConstArray = Eigen::Map<const Eigen::ArrayXf>;
using Doubles = Eigen::ArrayXd;

ConstArray row(const float* x, std::int64_t t, std::int64_t width) {
  return {x + t * width, width};
}
Array row(float* x, std::int64_t t, std::int64_t width) {
  return {x + t * width, width};
}

}  // namespace

std::vector<double> operand(const float* x, std::int64_t count, std::int64_t stride,
                            Precision precision) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) {
    value = precision == Precision::bf16 ? from_bf16(to_bf16(*x)) : *x;
    x += stride;
  }
  return values;
}

namespace {

// Here a packed weight lies as any matrix does; one of whole numbers has four bytes more a row, its
// scale.
Shape packed_shape(DType type, std::int64_t n, std::int64_t k) {
  check(type == DType::bf16_packed || type == DType::int8_packed,
        "pack: a weight is packed in bf16 or int8");
  return type == DType::bf16_packed ? Shape{n, k} : Shape{n, k + 4};
}

// Not-a-number where not all are finite.
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

}  // namespace

void ReferenceDevice::pack(const Tensor& weight, DType type, Tensor& packed) {
  const std::int64_t rows = rows_of(weight), width = width_of(weight);
  const Shape shape = packed_shape(type, rows, width);
  if (!packed) packed = empty(shape, type);
  check(packed.dtype() == type && packed.shape() == shape,
        "pack: a packed weight of another shape or type");
  const float* from = in(weight);
  if (type == DType::bf16_packed) {
    std::transform(from, from + weight.count(), reinterpret_cast<std::uint16_t*>(raw(packed)),
                   to_bf16);
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row)
    pack_row(from + row * width, width, raw(packed) + row * shape[1]);
}

namespace {

// [N, K] of a product's B.
std::vector<double> right_operand(const Tensor& b, Gemm how, std::int64_t n, std::int64_t k) {
  if (!is_packed(b)) return operand(in(b), n * k, 1, how.precision);
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

void ReferenceDevice::gemm(const Tensor& a, const Tensor& b, Tensor& c, Gemm how) {
  const auto [m, n, k] = gemm_sizes(a, b, c, how);
  const std::vector<double> right = right_operand(b, how, n, k);
  const std::int64_t b_step = how.transpose_b ? 1 : n;  // between consecutive k
  const std::int64_t b_next = how.transpose_b ? k : 1;  // between consecutive n
  for (std::int64_t i = 0; i < m; ++i) {
    const std::vector<double> left =
        operand(in(a) + (how.transpose_a ? i : i * k), k, how.transpose_a ? m : 1, how.precision);
    float* result = out(c) + i * n;
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = how.accumulate ? result[j] : 0.0;
      const double* column = right.data() + j * b_next;
      for (std::int64_t l = 0; l < k; ++l)
        sum += left[static_cast<std::size_t>(l)] * column[l * b_step];
      result[j] = static_cast<float>(sum);
    }
  }
}

void ReferenceDevice::add_bias(Tensor& y, const Tensor& bias) {
  check(width_of(y) == bias.count(), "add_bias: y [T, F], bias [F]");
  for (std::int64_t t = 0; t < rows_of(y); ++t)
    row(out(y), t, bias.count()) += row(in(bias), 0, bias.count());
}

void ReferenceDevice::bias_backward(const Tensor& dy, Tensor& dbias) {
  check(width_of(dy) == dbias.count(), "bias_backward: dy [T, F], dbias [F]");
  Doubles sum = row(in(dbias), 0, dbias.count()).cast<double>();
  for (std::int64_t t = 0; t < rows_of(dy); ++t)
    sum += row(in(dy), t, dbias.count()).cast<double>();
  row(out(dbias), 0, dbias.count()) = sum.cast<float>();
}

void ReferenceDevice::add(const Tensor& a, const Tensor& b, Tensor& sum) {
  check(a.count() == b.count() && a.count() == sum.count(), "add: operands differ in size");
  row(out(sum), 0, sum.count()) = row(in(a), 0, a.count()) + row(in(b), 0, b.count());
}

void ReferenceDevice::scale(Tensor& x, float factor) {
  row(out(x), 0, x.count()) *= factor;
}

void ReferenceDevice::rope(Tensor& x, std::span<const std::int32_t> positions, const Tensor& cos,
                           const Tensor& sin, int heads, bool inverse) {
  const std::int64_t width = width_of(x), size = heads > 0 ? width / heads : 0, half = size / 2;
  check(heads > 0 && half * 2 * heads == width &&
            rows_of(x) == static_cast<std::int64_t>(positions.size()),
        "rope: x [T, heads*K]");
  check(width_of(cos) == half && width_of(sin) == half && rows_of(cos) == rows_of(sin),
        "rope: cos, sin [P, K/2]");
  const double sign = inverse ? -1 : 1;
  for (std::size_t t = 0; t < positions.size(); ++t) {
    check(positions[t] >= 0 && positions[t] < rows_of(cos), "rope: a position beyond the table");
    const Doubles c = row(in(cos), positions[t], half).cast<double>();
    const Doubles s = row(in(sin), positions[t], half).cast<double>() * sign;
    for (int h = 0; h < heads; ++h) {
      Array head = row(out(x) + static_cast<std::int64_t>(t) * width, h, size);
      const Doubles low = head.head(half).cast<double>(), high = head.tail(half).cast<double>();
      head.head(half) = (low * c - high * s).cast<float>();
      head.tail(half) = (high * c + low * s).cast<float>();
    }
  }
}

void ReferenceDevice::adamw(Tensor& values, Tensor& grads, Tensor& m, Tensor& v, const AdamW& how) {
  const std::int64_t count = values.count();
  check(grads.count() == count && m.count() == count && v.count() == count,
        "adamw: operands differ in size");
  const AdamWScalars with(how);
  const Eigen::ArrayXf g = row(in(grads), 0, count) * with.grad_scale;
  Array p = row(out(values), 0, count), first = row(out(m), 0, count),
        second = row(out(v), 0, count);
  p *= with.decay;
  first += (g - first) * with.one_minus_beta1;
  second = second * with.beta2 + g * g * with.one_minus_beta2;
  p -= with.step_size * (first / (second.sqrt() / with.sqrt_correction2 + with.eps));
  if (with.clear_gradients) row(out(grads), 0, count).setZero();
}

double ReferenceDevice::sum_of_squares(const Tensor& x) {
  double sum = 0;
  for (std::int64_t i = 0; i < x.count(); ++i) sum += double{in(x)[i]} * double{in(x)[i]};
  return sum;
}

bool ReferenceDevice::all_finite(const Tensor& x) {
  return row(in(x), 0, x.count()).isFinite().all();
}

std::unique_ptr<Device> make_reference_device() {
  return std::make_unique<ReferenceDevice>();
}

}  // namespace troupe::engine::ops
