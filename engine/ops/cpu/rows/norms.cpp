#include "engine/ops/cpu/rows/norms.h"

#include <algorithm>
#include <cmath>

namespace troupe::engine::ops::cpu {
namespace {

/// Returns offset + gain, [D].
const float* gain_with_offset(const Context& context, const Tensor& gain, float offset) {
  if (offset == 0) return data(gain);
  float* sums = context.workspace.gain.need(gain.count());
  std::transform(data(gain), data(gain) + gain.count(), sums,
                 [&](float value) { return offset + value; });
  return sums;
}

}  // namespace

void rms_norm(const Context& context, const Tensor& x, const Tensor& gain, float eps, Tensor& y,
              Tensor& inv_rms, float offset) {
  const std::int64_t width = gain.count();
  const float *values = data(x), *weight = gain_with_offset(context, gain, offset);
  float *result = mutable_data(y), *inverse = mutable_data(inv_rms);
  context.parallel_ranges(rows_of(x), 4 * width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      inverse[t] = static_cast<float>(
          1 / std::sqrt(context.kernels.mean_square(values + t * width, width) + double{eps}));
      context.kernels.rms_norm(values + t * width, weight, inverse[t], result + t * width, width);
    }
  });
}

void rms_norm_backward(const Context& context, const Tensor& x, const Tensor& gain,
                       const Tensor& inv_rms, const Tensor& dy, Tensor& dx, Tensor& dgain,
                       float offset) {
  const std::int64_t width = gain.count(), count = rows_of(x);
  const float *values = data(x), *weight = gain_with_offset(context, gain, offset),
              *inverse = data(inv_rms), *above = data(dy);
  float *below = mutable_data(dx), *sums = mutable_data(dgain);
  // dgain first, because dx may be dy.
  context.parallel_ranges(width, 2 * count, 16, [&](std::int64_t begin, std::int64_t end, int) {
    context.kernels.rms_norm_dgain(values + begin, inverse, above + begin, count, width,
                                   sums + begin, end - begin);
  });
  context.parallel_ranges(count, 4 * width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      context.kernels.rms_norm_dx(values + t * width, weight, inverse[t], above + t * width,
                                  below + t * width, width);
    }
  });
}

void layer_norm(const Context& context, const Tensor& x, const Tensor& gain, const Tensor& bias,
                float eps, Tensor& y, Tensor& mean, Tensor& inv_std) {
  const std::int64_t width = gain.count();
  const float *values = data(x), *weight = data(gain), *shift = bias ? data(bias) : nullptr;
  float *result = mutable_data(y), *mean_of = mutable_data(mean), *inverse = mutable_data(inv_std);
  context.parallel_ranges(rows_of(x), 6 * width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      const float* row = values + t * width;
      mean_of[t] = static_cast<float>(context.kernels.mean(row, width));
      inverse[t] = static_cast<float>(
          1 / std::sqrt(context.kernels.variance(row, mean_of[t], width) + double{eps}));
      context.kernels.layer_norm(row, weight, shift, mean_of[t], inverse[t], result + t * width,
                                 width);
    }
  });
}

void layer_norm_backward(const Context& context, const Tensor& x, const Tensor& gain,
                         const Tensor& mean, const Tensor& inv_std, const Tensor& dy, Tensor& dx,
                         Tensor& dgain) {
  const std::int64_t width = gain.count(), count = rows_of(x);
  const float *values = data(x), *weight = data(gain), *mean_of = data(mean),
              *inverse = data(inv_std), *above = data(dy);
  float *below = mutable_data(dx), *sums = mutable_data(dgain);
  context.parallel_ranges(width, 2 * count, 16, [&](std::int64_t begin, std::int64_t end, int) {
    context.kernels.layer_norm_dgain(values + begin, mean_of, inverse, above + begin, count, width,
                                     sums + begin, end - begin);
  });
  context.parallel_ranges(count, 6 * width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      context.kernels.layer_norm_dx(values + t * width, weight, mean_of[t], inverse[t],
                                    above + t * width, below + t * width, width);
    }
  });
}

}  // namespace troupe::engine::ops::cpu
