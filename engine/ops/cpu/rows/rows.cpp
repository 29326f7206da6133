#include "engine/ops/cpu/rows/rows.h"

#include <algorithm>

namespace troupe::engine::ops::cpu {

void gather_rows(const Context& context, const Tensor& from, std::span<const std::int32_t> rows,
                 Tensor& to) {
  const std::int64_t width = width_of(from), count = static_cast<std::int64_t>(rows.size());
  const float* source = data(from);
  float* target = mutable_data(to);
  context.parallel_ranges(count, width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = rows[static_cast<std::size_t>(i)];
      row < 0 ? std::fill_n(target + i * width, width, 0.0F)
              : std::copy_n(source + row * width, width, target + i * width);
    }
  });
}

// A thread adds all rows of its columns, so that their order is fixed.
void scatter_add_rows(const Context& context, const Tensor& from,
                      std::span<const std::int32_t> rows, Tensor& table) {
  const std::int64_t width = width_of(from), count = static_cast<std::int64_t>(rows.size());
  const float* source = data(from);
  float* target = mutable_data(table);
  context.parallel_ranges(width, count, 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = rows[static_cast<std::size_t>(i)];
      if (row < 0) continue;
      float* sums = target + row * width + begin;
      context.kernels.add(sums, source + i * width + begin, sums, end - begin);
    }
  });
}

void add_bias(const Context& context, Tensor& y, const Tensor& bias) {
  const std::int64_t width = bias.count();
  float* values = mutable_data(y);
  const float* row = data(bias);
  context.parallel_ranges(rows_of(y), width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t)
      context.kernels.add(values + t * width, row, values + t * width, width);
  });
}

void bias_backward(const Context& context, const Tensor& dy, Tensor& dbias) {
  const std::int64_t width = dbias.count(), count = rows_of(dy);
  const float* above = data(dy);
  float* sums = mutable_data(dbias);
  context.parallel_ranges(width, count, 16, [&](std::int64_t begin, std::int64_t end, int) {
    context.kernels.column_sums(above + begin, count, width, sums + begin, end - begin);
  });
}

void rope(const Context& context, Tensor& x, std::span<const std::int32_t> positions,
          const Tensor& cos, const Tensor& sin, int heads, bool inverse) {
  const std::int64_t width = width_of(x), half = heads > 0 ? width / heads / 2 : 0;
  float* values = mutable_data(x);
  const float *c = data(cos), *s = data(sin);
  context.parallel_ranges(rows_of(x), 4 * width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t at = positions[static_cast<std::size_t>(t)] * half;
      context.kernels.rope(values + t * width, c + at, s + at, heads, half, inverse);
    }
  });
}

}  // namespace troupe::engine::ops::cpu
