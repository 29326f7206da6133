// LM head of the reference device: one row of logits at a time. Arguments are those of Device,
// already checked.
#pragma once

#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu::reference {

void head(const HeadInputs& in, const HeadOutputs& out);
/// Accumulates dweight, whatever to.accumulate says.
void head_backward(const HeadInputs& in, const HeadSaved& saved, const HeadUpstream& up,
                   const HeadGradients& to);
void scale_logits(Tensor& logits, const HeadScale& scale);
void token_logprob(const Tensor& logits, const TargetRows& rows, float inv_temperature,
                   Tensor& logp, Tensor& lse);

}  // namespace troupe::engine::ops::cpu::reference
