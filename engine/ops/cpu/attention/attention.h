// Attention of the CPU device. Arguments are those of Device, already checked.
#pragma once

#include "engine/ops/cpu/context/context.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu {

void attention(const Context& context, const AttentionInputs& in, Tensor& out, Tensor* lse);
void attention_backward(const Context& context, const AttentionInputs& in,
                        const AttentionBackward& with);

}  // namespace troupe::engine::ops::cpu
