#include "engine/nn/normalized_rows.h"

#include <cmath>

namespace troupe::engine::nn {
namespace {

// x / |x| is the RMSNorm of x with the gain 1 / sqrt(D), given here as the offset of a gain of
// zeros.
float offset_of(const Tensor& weight) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(weight.shape()[1])));
}

}  // namespace

NormalizedRows::NormalizedRows(ops::Device& device, const Parameter& weight)
    : device_(device),
      weight_(weight),
      gain_(device.empty({weight.value.shape()[1]})),
      rows_(device.empty(weight.value.shape())),
      inverse_(device.empty({weight.value.shape()[0]})) {
  constexpr float no_division_by_zero = 1e-28F;  // torch adds nothing to a norm above 1e-12
  device.fill(gain_, 0);
  device.rms_norm(weight.f32(device), gain_, no_division_by_zero, rows_, inverse_,
                  offset_of(weight.value));
}

void NormalizedRows::backward(const Tensor& drows) const {
  Tensor dweight = device_.empty(drows.shape()), dgain = device_.empty(gain_.shape());
  device_.fill(dgain, 0);  // not used: the gain is a constant
  device_.rms_norm_backward(weight_.f32(device_), gain_, inverse_, drows, dweight, dgain,
                            offset_of(weight_.value));
  weight_.zero_if_unset(device_);
  GradientSum sum(device_, weight_.grad);
  device_.add(sum.f32(), dweight, sum.f32());
  sum.finish();
}

}  // namespace troupe::engine::nn
