// The router of a mixture of experts, one token at a time, in f64 but for choice values.
#pragma once

#include <span>
#include <vector>

#include "engine/ops/routing.h"

namespace troupe::engine::ops::cpu {

/// Memory for the tokens of one thread.
struct RouterScratch {
  std::vector<double> scores;  ///< [E]
  std::vector<float> choice;   ///< [E]
};

/// Chooses the experts of a token with these logits [E] and bias [E] or empty: k ascending indices
/// and their weights.
void route_token(const Router& how, std::span<const float> logits, std::span<const float> bias,
                 std::span<std::int32_t> experts, std::span<float> weights, RouterScratch& scratch);

/// dlogits [E] of a token, assigned, from the gradients of the weights of the chosen experts.
void route_token_backward(const Router& how, std::span<const float> logits,
                          std::span<const std::int32_t> experts, std::span<const float> dweights,
                          std::span<float> dlogits, RouterScratch& scratch);

}  // namespace troupe::engine::ops::cpu
