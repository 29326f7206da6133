// RMSNorm and LayerNorm. Threads divide rows, or columns for gradients of gains. Arguments are
// those of Device, already checked.
#pragma once

#include <span>

#include "engine/ops/cpu/context/context.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu {

void rms_norm(const Context& context, const Tensor& x, const Tensor& gain, float eps, Tensor& y,
              Tensor& inv_rms, float offset);
void rms_norm_backward(const Context& context, const Tensor& x, const Tensor& gain,
                       const Tensor& inv_rms, const Tensor& dy, Tensor& dx, Tensor& dgain,
                       float offset);
void layer_norm(const Context& context, const Tensor& x, const Tensor& gain, const Tensor& bias,
                float eps, Tensor& y, Tensor& mean, Tensor& inv_std);
void layer_norm_backward(const Context& context, const Tensor& x, const Tensor& gain,
                         const Tensor& mean, const Tensor& inv_std, const Tensor& dy, Tensor& dx,
                         Tensor& dgain);

}  // namespace troupe::engine::ops::cpu
