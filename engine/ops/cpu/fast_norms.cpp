// The fast device's norms. Forward and dx are shared out by rows, gradients of gains by columns.
#include <algorithm>
#include <cmath>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {

const float* FastDevice::shifted(const Tensor& gain, float offset) {
  if (offset == 0) return in(gain);
  float* sums = gain_.need(gain.count());
  std::transform(in(gain), in(gain) + gain.count(), sums,
                 [&](float value) { return offset + value; });
  return sums;
}

void FastDevice::rms_norm(const Tensor& x, const Tensor& gain, float eps, Tensor& y,
                          Tensor& inv_rms, float offset) {
  check_norm(x, gain, y, inv_rms);
  const std::int64_t width = gain.count();
  const float *values = in(x), *weight = shifted(gain, offset);
  float *result = out(y), *inverse = out(inv_rms);
  share(rows_of(x), 4 * width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      inverse[t] = static_cast<float>(
          1 / std::sqrt(kernels_.mean_square(values + t * width, width) + double{eps}));
      kernels_.rms_norm(values + t * width, weight, inverse[t], result + t * width, width);
    }
  });
}

void FastDevice::rms_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& inv_rms,
                                   const Tensor& dy, Tensor& dx, Tensor& dgain, float offset) {
  check_norm_backward(x, gain, inv_rms, dy, dx, dgain);
  const std::int64_t width = gain.count(), count = rows_of(x);
  const float *values = in(x), *weight = shifted(gain, offset), *inverse = in(inv_rms),
              *above = in(dy);
  float *below = out(dx), *sums = out(dgain);
  // The gain first: dx may be dy.
  share(width, 2 * count, 16, [&](std::int64_t begin, std::int64_t end, int) {
    kernels_.rms_norm_dgain(values + begin, inverse, above + begin, count, width, sums + begin,
                            end - begin);
  });
  share(count, 4 * width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      kernels_.rms_norm_dx(values + t * width, weight, inverse[t], above + t * width,
                           below + t * width, width);
    }
  });
}

void FastDevice::layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, float eps,
                            Tensor& y, Tensor& mean, Tensor& inv_std) {
  check_norm(x, gain, y, inv_std);
  check_layer_norm(gain, bias, mean, inv_std);
  const std::int64_t width = gain.count();
  const float *values = in(x), *weight = in(gain), *shift = bias ? in(bias) : nullptr;
  float *result = out(y), *middle = out(mean), *inverse = out(inv_std);
  share(rows_of(x), 6 * width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      const float* row = values + t * width;
      middle[t] = static_cast<float>(kernels_.mean(row, width));
      inverse[t] =
          static_cast<float>(1 / std::sqrt(kernels_.variance(row, middle[t], width) + double{eps}));
      kernels_.layer_norm(row, weight, shift, middle[t], inverse[t], result + t * width, width);
    }
  });
}

void FastDevice::layer_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& mean,
                                     const Tensor& inv_std, const Tensor& dy, Tensor& dx,
                                     Tensor& dgain) {
  check_norm_backward(x, gain, inv_std, dy, dx, dgain);
  check_layer_norm(gain, {}, mean, inv_std);
  const std::int64_t width = gain.count(), count = rows_of(x);
  const float *values = in(x), *weight = in(gain), *middle = in(mean), *inverse = in(inv_std),
              *above = in(dy);
  float *below = out(dx), *sums = out(dgain);
  share(width, 2 * count, 16, [&](std::int64_t begin, std::int64_t end, int) {
    kernels_.layer_norm_dgain(values + begin, middle, inverse, above + begin, count, width,
                              sums + begin, end - begin);
  });
  share(count, 6 * width, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      kernels_.layer_norm_dx(values + t * width, weight, middle[t], inverse[t], above + t * width,
                             below + t * width, width);
    }
  });
}

}  // namespace troupe::engine::ops
