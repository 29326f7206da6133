// The fast device's operations on rows: copies, biases, rotations, activations.
#include <algorithm>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {

void FastDevice::gather_rows(const Tensor& from, std::span<const std::int32_t> rows, Tensor& to) {
  const std::int64_t width = width_of(from), count = static_cast<std::int64_t>(rows.size());
  check_moved_rows("gather_rows", to, rows, from);
  const float* source = in(from);
  float* target = out(to);
  share(count, width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = rows[static_cast<std::size_t>(i)];
      row < 0 ? std::fill_n(target + i * width, width, 0.0F)
              : std::copy_n(source + row * width, width, target + i * width);
    }
  });
}

// A thread adds all rows in some columns: their order stays.
void FastDevice::scatter_add_rows(const Tensor& from, std::span<const std::int32_t> rows,
                                  Tensor& table) {
  const std::int64_t width = width_of(from), count = static_cast<std::int64_t>(rows.size());
  check_moved_rows("scatter_add_rows", from, rows, table);
  const float* source = in(from);
  float* target = out(table);
  share(width, count, 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = rows[static_cast<std::size_t>(i)];
      if (row < 0) continue;
      float* sums = target + row * width + begin;
      kernels_.add(sums, source + i * width + begin, sums, end - begin);
    }
  });
}

void FastDevice::add_bias(Tensor& y, const Tensor& bias) {
  const std::int64_t width = bias.count();
  check(width_of(y) == width, "add_bias: y [T, F], bias [F]");
  float* values = out(y);
  const float* row = in(bias);
  share(rows_of(y), width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t)
      kernels_.add(values + t * width, row, values + t * width, width);
  });
}

void FastDevice::bias_backward(const Tensor& dy, Tensor& dbias) {
  const std::int64_t width = dbias.count(), count = rows_of(dy);
  check(width_of(dy) == width, "bias_backward: dy [T, F], dbias [F]");
  const float* above = in(dy);
  float* sums = out(dbias);
  share(width, count, 16, [&](std::int64_t begin, std::int64_t end, int) {
    kernels_.column_sums(above + begin, count, width, sums + begin, end - begin);
  });
}

void FastDevice::rope(Tensor& x, std::span<const std::int32_t> positions, const Tensor& cos,
                      const Tensor& sin, int heads, bool inverse) {
  const std::int64_t width = width_of(x), half = heads > 0 ? width / heads / 2 : 0;
  check(heads > 0 && half * 2 * heads == width &&
            rows_of(x) == static_cast<std::int64_t>(positions.size()),
        "rope: x [T, heads*K]");
  check(width_of(cos) == half && width_of(sin) == half && rows_of(cos) == rows_of(sin),
        "rope: cos, sin [P, K/2]");
  for (const std::int32_t position : positions)
    check(position >= 0 && position < rows_of(cos), "rope: a position beyond the table");
  float* values = out(x);
  const float *c = in(cos), *s = in(sin);
  share(rows_of(x), 4 * width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t at = positions[static_cast<std::size_t>(t)] * half;
      kernels_.rope(values + t * width, c + at, s + at, heads, half, inverse);
    }
  });
}

void FastDevice::gated(Activation activation, const Tensor& gate, const Tensor& up, Tensor& y) {
  check(gate.count() == up.count() && gate.count() == y.count(), "gated: operands differ in size");
  const float *g = in(gate), *u = in(up);
  float* result = out(y);
  share(y.count(), 8, 1024, [&](std::int64_t begin, std::int64_t end, int) {
    kernels_.gated(activation, g + begin, u + begin, result + begin, end - begin);
  });
}

void FastDevice::gated_backward(Activation activation, const Tensor& gate, const Tensor& up,
                                const Tensor& dy, Tensor& dgate, Tensor& dup, Tensor* y) {
  check(gate.count() == up.count() && gate.count() == dy.count() && gate.count() == dgate.count() &&
            gate.count() == dup.count() && (y == nullptr || gate.count() == y->count()),
        "gated_backward: operands differ in size");
  const float *g = in(gate), *u = in(up), *above = in(dy);
  float *dg = out(dgate), *du = out(dup), *again = y == nullptr ? nullptr : out(*y);
  share(dy.count(), 12, 1024, [&](std::int64_t begin, std::int64_t end, int) {
    kernels_.gated_backward(activation, g + begin, u + begin, above + begin, dg + begin, du + begin,
                            again == nullptr ? nullptr : again + begin, end - begin);
  });
}

void FastDevice::activate(Activation activation, const Tensor& x, Tensor& y) {
  check(x.count() == y.count(), "activate: operands differ in size");
  const float* values = in(x);
  float* result = out(y);
  share(y.count(), 8, 1024, [&](std::int64_t begin, std::int64_t end, int) {
    kernels_.activate(activation, values + begin, result + begin, end - begin);
  });
}

void FastDevice::activate_backward(Activation activation, const Tensor& x, const Tensor& dy,
                                   Tensor& dx) {
  check(x.count() == dy.count() && x.count() == dx.count(),
        "activate_backward: operands differ in size");
  const float *values = in(x), *above = in(dy);
  float* below = out(dx);
  share(dy.count(), 12, 1024, [&](std::int64_t begin, std::int64_t end, int) {
    kernels_.activate_backward(activation, values + begin, above + begin, below + begin,
                               end - begin);
  });
}

}  // namespace troupe::engine::ops
