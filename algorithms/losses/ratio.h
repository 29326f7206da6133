// Ratios of policies: how much likelier the trained weights make a sample than those that it is
// compared with.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "engine/data/experience.h"
#include "engine/loss/tape.h"

namespace troupe::algorithms {

/// Of what the ratio rho = pi / pi_old is, with x_t = log pi(t) - log pi_old(t):
///   token           e^x_t
///   sequence        e^(mean of x over the sample), the same at each of its tokens (GSPO,
///   arXiv:2507.18071 eq. 7) sequence_token  the same value; its gradient at token t is that of log
///   pi(t) alone (GSPO-token, eq. 14; verl's GSPO). It differs from
///                   `sequence` only where the tokens of one sample have different advantages or
///                   weights.
///   sequence_sum    e^(sum of x over the sample): the probability of the whole answer (TRL's RLOO)
enum class RatioLevel { token, sequence, sequence_token, sequence_sum };
constexpr std::array<std::string_view, 4> names_of(RatioLevel) {
  return {"token", "sequence", "sequence_token", "sequence_sum"};
}

/// log rho, [T]. `logp` and `old` [T]; tokens that are not trained on count for nothing. limit > 0
/// holds it: a token's within +-limit (verl 20), a sequence's below limit (verl's GSPO 10).
engine::loss::Expr log_ratio(RatioLevel level, const engine::loss::Expr& logp,
                             const engine::loss::Expr& old, const engine::data::Experience& b,
                             double limit);

}  // namespace troupe::algorithms
