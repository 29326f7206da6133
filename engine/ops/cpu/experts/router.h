// The router of a mixture of experts, one token at a time, in f64 but for choice values.
#pragma once

#include <span>
#include <vector>

#include "engine/ops/routing.h"

namespace troupe::engine::ops::cpu {

inline std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Row `index` of values [N, width].
template <class T>
std::span<T> row(T* values, std::int64_t index, std::int64_t width) {
  return {values + index * width, at(width)};
}

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

/// The share of each expert in a token (RouterSums), and the logsumexp of its logits.
double shares_of_token(const Router& how, std::span<const float> logits,
                       std::vector<double>& shares);

/// The k experts of largest logits, the lower index first among equal ones; ascending.
void favourites_of_token(std::span<const float> logits, std::span<std::int32_t> experts);

}  // namespace troupe::engine::ops::cpu
