// Estimators of KL(pi, reference) from the sampled token alone (Schulman 2020, joschu.net/blog/kl-approx.html).
#pragma once

#include <array>
#include <string_view>

#include "engine/loss/tape.h"

namespace troupe::algorithms {

/// With x = log pi - log pi_ref:  k1 = x (unbiased, noisy),  k2 = x^2 / 2 (biased, its gradient is that of the KL),
/// k3 = e^-x - 1 + x (unbiased and never negative; GRPO's),  abs = |x|.
enum class KlEstimator { k1, k2, k3, abs };
constexpr std::array<std::string_view, 4> names_of(KlEstimator) { return {"k1", "k2", "k3", "abs"}; }

/// Per token, unclamped, differentiable in x.
engine::loss::Expr kl(KlEstimator estimator, const engine::loss::Expr& x);

}  // namespace troupe::algorithms
