// Roofline: the floating-point operations and bytes of an operation, computed from its sizes alone,
// and the measured peak rates of a device, with which a profile compares them.
#pragma once

#include "engine/base/text/spans.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// 2 M N K; an accumulated C is read and written.
Work gemm_work(const Tensor& a, const Tensor& b, const Tensor& c, Gemm how);
/// Sum over the products.
Work gemms_work(std::span<const GemmCall> calls);
/// 4 H K for each key that a row sees (q.k and p v). Keys and values are read once per sequence, as
/// far as its last row sees.
Work attention_work(const AttentionInputs& in);
/// 10 H K for each key: the scores again, dp, dq, dk and dv.
Work attention_backward_work(const AttentionInputs& in);
/// 2 D V for each row with a target, and 2 R V for an adapter.
Work head_work(const HeadInputs& in);
/// Three times head_work(): the logits again, unless they were kept, dhidden, and dweight, unless
/// it is frozen.
Work head_backward_work(const HeadInputs& in, const Tensor& dweight, bool has_logits);

/// Peak rates of a device.
struct Ceiling {
  double f32_flops = 0;   ///< FLOP/s of a square f32 product
  double bf16_flops = 0;  ///< FLOP/s of a square bf16 product; 0: not measured
  double read_bytes = 0;  ///< bytes/s of a pass over more memory than the caches hold

  /// Returns the shortest possible time for the work, in seconds.
  double seconds(const Work& work) const;
};

/// Measures the rates. Takes about a quarter of a second and 128 MiB.
Ceiling measure_ceiling(Device& device, bool bf16);

}  // namespace troupe::engine::ops
