#include "engine/ops/cpu/rows/elementwise.h"

#include <algorithm>
#include <atomic>

#include "engine/ops/norm_block.h"

namespace troupe::engine::ops::cpu {

void upload_from(const Context& context, Tensor& to, const Source& source) {
  // Few enough that a source of two passes finds its values in the L2 cache.
  constexpr std::int64_t part = 65536;
  const std::int64_t count = to.count();
  float* values = mutable_data(to);
  context.parallel_for((count + part - 1) / part, count, [&](std::int64_t item, int) {
    const std::int64_t begin = item * part;
    source(begin, {values + begin, static_cast<std::size_t>(std::min(part, count - begin))});
  });
}

void visit_rows(const Context& context, const Tensor& from, const RowVisitor& visit) {
  const std::int64_t width = width_of(from);
  const float* values = data(from);
  context.pool.run(rows_of(from), [&](std::int64_t row, int) {
    visit(row, {values + row * width, static_cast<std::size_t>(width)});
  });
}

void fill(const Context& context, Tensor& x, float value) {
  float* values = mutable_data(x);
  context.parallel_ranges(x.count(), 1, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    std::fill(values + begin, values + end, value);
  });
}

void add(const Context& context, const Tensor& a, const Tensor& b, Tensor& sum) {
  const float *left = data(a), *right = data(b);
  float* result = mutable_data(sum);
  context.parallel_ranges(sum.count(), 1, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    context.kernels.add(left + begin, right + begin, result + begin, end - begin);
  });
}

void scale(const Context& context, Tensor& x, float factor) {
  float* values = mutable_data(x);
  context.parallel_ranges(x.count(), 1, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    context.kernels.scale(values + begin, factor, end - begin);
  });
}

void dropout(const Context& context, const Tensor& x, const Dropout& how, Tensor& y) {
  constexpr std::int64_t cost = 16;  // of an element
  const std::int64_t width = width_of(x);
  const float* from = data(x);
  float* to = mutable_data(y);
  context.parallel_ranges(
      rows_of(x), cost * width, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t row = begin; row < end; ++row)
          context.kernels.dropout(
              DropoutRow(how.probability, how.key, how.rows.host[static_cast<std::size_t>(row)],
                         how.stream),
              static_cast<std::uint64_t>(how.first_column), from + row * width, to + row * width,
              width);
      });
}

void adamw(const Context& context, Tensor& values, Tensor& grads, Tensor& m, Tensor& v,
           const AdamW& how) {
  const std::int64_t count = values.count();
  const AdamWScalars with(how);
  float *p = mutable_data(values), *g = mutable_data(grads), *first = mutable_data(m),
        *second = mutable_data(v);
  context.parallel_ranges(count, 8, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    context.kernels.adamw(p + begin, g + begin, first + begin, second + begin, with, end - begin);
  });
}

double sum_of_squares(const Context& context, const Tensor& x) {
  constexpr std::int64_t block = sum_of_squares_block;
  const std::int64_t count = x.count(), blocks = (count + block - 1) / block;
  const float* values = x.dtype() == DType::bf16 ? nullptr : data(x);
  const auto block_at = [&](std::int64_t begin, std::int64_t size, int worker) -> const float* {
    if (values != nullptr) return values + begin;
    float* wide = context.workspace.tiles(worker).need(block);
    const auto* bits = bf16_data(x) + begin;
    std::transform(bits, bits + size, wide, from_bf16);
    return wide;
  };
  std::vector<double>& partial_sums = context.workspace.partial_sums;
  partial_sums.resize(static_cast<std::size_t>(blocks));
  context.parallel_ranges(blocks, block, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t size = std::min(block, count - i * block);
      partial_sums[static_cast<std::size_t>(i)] =
          context.kernels.sum_of_squares(block_at(i * block, size, worker), size);
    }
  });
  double total = 0;
  for (const double sum : partial_sums) total += sum;
  return total;
}

bool all_finite(const Context& context, const Tensor& x) {
  const auto part_is = [&](std::int64_t begin, std::int64_t end) {
    if (x.dtype() != DType::bf16) return context.kernels.all_finite(data(x) + begin, end - begin);
    constexpr unsigned exponent = 0x7f80;
    const auto* bits = bf16_data(x);
    return std::none_of(bits + begin, bits + end,
                        [](unsigned each) { return (each & exponent) == exponent; });
  };
  std::atomic<bool> finite{true};
  context.parallel_ranges(x.count(), 1, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    if (!part_is(begin, end)) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load();
}

void gated(const Context& context, Activation activation, const Tensor& gate, const Tensor& up,
           Tensor& y) {
  const float *g = data(gate), *u = data(up);
  float* result = mutable_data(y);
  context.parallel_ranges(y.count(), 8, 1024, [&](std::int64_t begin, std::int64_t end, int) {
    context.kernels.gated(activation, g + begin, u + begin, result + begin, end - begin);
  });
}

void gated_backward(const Context& context, Activation activation, const Tensor& gate,
                    const Tensor& up, const Tensor& dy, Tensor& dgate, Tensor& dup, Tensor* y) {
  const float *g = data(gate), *u = data(up), *above = data(dy);
  float *dg = mutable_data(dgate), *du = mutable_data(dup),
        *again = y == nullptr ? nullptr : mutable_data(*y);
  context.parallel_ranges(dy.count(), 12, 1024, [&](std::int64_t begin, std::int64_t end, int) {
    context.kernels.gated_backward(activation, g + begin, u + begin, above + begin, dg + begin,
                                   du + begin, again == nullptr ? nullptr : again + begin,
                                   end - begin);
  });
}

void activate(const Context& context, Activation activation, const Tensor& x, Tensor& y) {
  const float* values = data(x);
  float* result = mutable_data(y);
  context.parallel_ranges(y.count(), 8, 1024, [&](std::int64_t begin, std::int64_t end, int) {
    context.kernels.activate(activation, values + begin, result + begin, end - begin);
  });
}

void activate_backward(const Context& context, Activation activation, const Tensor& x,
                       const Tensor& dy, Tensor& dx) {
  const float *values = data(x), *above = data(dy);
  float* below = mutable_data(dx);
  context.parallel_ranges(dy.count(), 12, 1024, [&](std::int64_t begin, std::int64_t end, int) {
    context.kernels.activate_backward(activation, values + begin, above + begin, below + begin,
                                      end - begin);
  });
}

}  // namespace troupe::engine::ops::cpu
