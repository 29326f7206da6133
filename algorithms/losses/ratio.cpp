#include "algorithms/losses/ratio.h"

#include <limits>

namespace troupe::algorithms {

using namespace engine::loss;

Expr log_ratio(RatioLevel level, const Expr& logp, const Expr& old,
               const engine::data::Experience& b, double limit) {
  const Expr tokens = where(b.mask, logp - old, 0.0);  // [T]
  if (level == RatioLevel::token) return limit > 0 ? clip(tokens, -limit, limit) : tokens;
  Expr whole;
  if (level == RatioLevel::sequence_sum)
    whole = spread(sum_by_sequence(tokens * b.mask, b.offsets), b.offsets);
  else
    whole = spread(mean_by_sequence(tokens, b.mask, b.offsets), b.offsets);
  if (level == RatioLevel::sequence_token) {
    const Expr own = where(b.mask, logp, 0.0);
    whole = own - detach(own) + detach(whole);
  }
  return limit > 0 ? clip(whole, -std::numeric_limits<double>::infinity(), limit) : whole;
}

}  // namespace troupe::algorithms
