// Estimators of KL(pi, reference) from the sampled token alone (Schulman 2020,
// joschu.net/blog/kl-approx.html).
#pragma once

#include <array>
#include <string_view>

#include "engine/loss/tape.h"

namespace troupe::algorithms {

/// With x = log pi - log pi_ref:  k1 = x (unbiased, noisy),  k2 = x^2 / 2 (biased, its gradient is
/// that of the KL), k3 = e^-x - 1 + x (unbiased and never negative; GRPO's),  abs = |x|. k1+ and
/// k3+ have the value of k1 and k3 and the gradient of k2 (verl's straight-through forms).
enum class KlEstimator { k1, k2, k3, abs, k1_plus, k3_plus };
constexpr std::array<std::string_view, 6> names_of(KlEstimator) {
  return {"k1", "k2", "k3", "abs", "k1+", "k3+"};
}

/// How a single token is kept from outweighing all others; the gradient of what is held is 0:
///   none      not at all (TRL)
///   verl      k3 alone: x within +-20, the result within +-10 (verl, MindSpeed-RL)
///   openrlhf  the result of every estimator within +-10
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

/// Per token, differentiable in x.
engine::loss::Expr kl(KlEstimator estimator, const engine::loss::Expr& x,
                      KlClamp clamp = KlClamp::none);

}  // namespace troupe::algorithms
