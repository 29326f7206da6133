// Estimators of KL(pi, reference) from sampled tokens (Schulman 2020,
// joschu.net/blog/kl-approx.html).
#pragma once

#include <array>
#include <string_view>

#include "engine/loss/tape.h"

namespace troupe::algorithms {

/// KL estimators, with x = log pi - log pi_ref:
///   k1        x: unbiased, high variance
///   k2        x^2 / 2: biased; its gradient is that of the KL
///   k3        e^-x - 1 + x: unbiased and never negative (GRPO)
///   abs       |x|
///   k1+, k3+  the value of k1 and k3 with the gradient of k2 (verl's straight-through forms)
enum class KlEstimator { k1, k2, k3, abs, k1_plus, k3_plus };
constexpr std::array<std::string_view, 6> names_of(KlEstimator) {
  return {"k1", "k2", "k3", "abs", "k1+", "k3+"};
}

/// Clamping of a token's estimate; a clamped value has gradient 0:
///   none      no clamping (TRL)
///   verl      k3 only: x to +-20, the result to +-10 (verl, MindSpeed-RL)
///   openrlhf  the result of every estimator to +-10
enum class KlClamp { none, verl, openrlhf };
constexpr std::array<std::string_view, 3> names_of(KlClamp) {
  return {"none", "verl", "openrlhf"};
}

constexpr const char* kl_doc =
    "estimator of the KL divergence from the reference; with a plus: its value with the gradient "
    "of k2";
constexpr const char* kl_clamp_doc =
    "clamp a token's KL estimate: none (TRL); verl: k3 only, log-ratio to +-20 and result to +-10; "
    "openrlhf: every estimator to +-10";

/// The estimate of each token, differentiable in x.
engine::loss::Expr kl(KlEstimator estimator, const engine::loss::Expr& x,
                      KlClamp clamp = KlClamp::none);

}  // namespace troupe::algorithms
