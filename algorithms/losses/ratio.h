// Importance ratios of policies.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "engine/data/experience.h"
#include "engine/loss/tape.h"

namespace troupe::algorithms {

/// The level of the ratio rho = pi / pi_old, with x_t = log pi(t) - log pi_old(t):
///   token           e^x_t
///   sequence        e^(mean of x over the sample), the same for each of its tokens (GSPO,
///                   arXiv:2507.18071 eq. 7)
///   sequence_token  the same value with the gradient of log pi(t) alone (GSPO-token, eq. 14;
///                   verl's GSPO). Differs from `sequence` only where the tokens of one sample
///                   have different advantages or weights.
///   sequence_sum    e^(sum of x over the sample), the ratio of the whole answer (TRL's RLOO)
enum class RatioLevel { token, sequence, sequence_token, sequence_sum };
constexpr std::array<std::string_view, 4> names_of(RatioLevel) {
  return {"token", "sequence", "sequence_token", "sequence_sum"};
}

/// log rho, [T]. `logp` and `old` [T]; untrained tokens are ignored. limit > 0 clamps it: a token's
/// to +-limit (verl: 20), a sequence's to at most limit (verl's GSPO: 10).
engine::loss::Expr log_ratio(RatioLevel level, const engine::loss::Expr& logp,
                             const engine::loss::Expr& old, const engine::data::Experience& b,
                             double limit);

}  // namespace troupe::algorithms
