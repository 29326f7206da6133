// What the products of an operation have to compute and move, by their sizes alone: what a profiler
// divides by the time they took.
#pragma once

#include "engine/base/spans.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// 2 M N K; an accumulated C is read and written.
Work gemm_work(const Tensor& a, const Tensor& b, const Tensor& c, Gemm how);
/// The sum of theirs.
Work gemms_work(std::span<const GemmCall> calls);
/// 4 H K for each key that a row sees (q.k and p v). Keys and values are moved once a sequence, as
/// far as its last row sees.
Work attention_work(const Tensor& q, const Layout& layout, const AttentionShape& shape,
                    Precision precision);
/// 10 H K for each key: the scores once more, dp, dq, dk and dv.
Work attention_backward_work(const Tensor& q, const Layout& layout, const AttentionShape& shape,
                             Precision precision);
/// 2 D V for each row with a target, and 2 R V for an adapter.
Work head_work(const Tensor& hidden, const Tensor& weight, std::span<const std::int32_t> targets,
               Precision precision, const HeadAdapter* adapter);
/// Three times that: the logits once more, unless they were kept, dhidden, and dweight, where there
/// is one.
Work head_backward_work(const Tensor& hidden, const Tensor& weight,
                        std::span<const std::int32_t> targets, Precision precision,
                        const Tensor& dweight, const HeadAdapter* adapter, bool has_logits = false);

}  // namespace troupe::engine::ops
