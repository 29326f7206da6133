// LM head of the CPU device. Arguments are those of Device, already checked.
#pragma once

#include "engine/ops/cpu/lm_head/lm_head_pass.h"

namespace troupe::engine::ops::cpu {

/// out.kept, unless it is nullptr or absent, has lm_head_kept_logits() elements.
void lm_head(const Context& context, const LmHeadLimits& limits, const HeadInputs& in,
             const HeadOutputs& out);
/// Returns the number of logits that lm_head() keeps.
std::int64_t lm_head_kept_logits(const Context& context, const LmHeadLimits& limits,
                                 const HeadInputs& in);
void lm_head_backward(const Context& context, const LmHeadLimits& limits, const HeadInputs& in,
                      const HeadSaved& saved, const HeadUpstream& up, const HeadGradients& to);
void lm_head_forward_backward(const Context& context, const LmHeadLimits& limits,
                              const HeadInputs& in, const HeadUpstream& up, const HeadOutputs& out,
                              const HeadGradients& to);
/// Converts products of the head to its logits at temperature 1.
void scale_row(const Kernels& kernels, float* logits, std::int64_t n, const HeadScale& scale);
void scale_logits(const Context& context, Tensor& logits, const HeadScale& scale);
void token_logprob(const Context& context, const Tensor& logits, const TargetRows& rows,
                   float inv_temperature, Tensor& logp, Tensor& lse);

}  // namespace troupe::engine::ops::cpu
