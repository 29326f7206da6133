// Model FLOPs: the floating-point operations of a model's matrix products by the formula of
// Megatron-LM, the numerator of the model FLOPs utilization (MFU).
#pragma once

#include "engine/models/spec.h"

namespace troupe::engine::models {

/// FLOPs of the forward pass. For sequences of lengths s: (layers + head) * sum(s) + attention *
/// sum(s^2). Attention counts every pair of tokens, not only those that a causal mask leaves.
struct ForwardFlops {
  double layers = 0;     ///< per token: products with the weights of all layers
  double attention = 0;  ///< per pair of tokens: q.k and p v of all layers
  double head = 0;       ///< per token: the language head or the score head
};

/// Megatron-LM 0.8, num_floating_point_operations(), divided by 3 for the forward pass alone. With
/// L layers of width h, a heads and g groups of queries of size k, an inner size of f and a
/// vocabulary of V: layers = 4 L h (a k + g k + m f / 2), where m is 3 for a gated MLP and 2
/// otherwise; attention = 4 L a k; head = 2 h V. In layers with experts
/// m f is that of the chosen and the shared experts, plus the number of experts for the router.
/// Adapters are not counted.
ForwardFlops forward_flops(const DecoderSpec& spec);

}  // namespace troupe::engine::models
