// Attention of the reference device: one row and one head at a time. Arguments are those of Device,
// already checked.
#pragma once

#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu::reference {

void attention(const AttentionInputs& in, Tensor& out, Tensor* lse);
void attention_backward(const AttentionInputs& in, const AttentionBackward& with);

}  // namespace troupe::engine::ops::cpu::reference
