#include "algorithms/losses/cpo_loss.h"

#include "algorithms/losses/simpo_loss.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<CpoLoss>);

namespace {

// The losses are SimPO's without a margin, over other log-probabilities.
SimpoLoss as_simpo(const CpoLoss& loss) {
  return {.kind = static_cast<SimpoLossKind>(loss.kind),
          .beta = loss.beta,
          .gamma_beta_ratio = 0,
          .label_smoothing = loss.label_smoothing,
          .alpha = loss.alpha,
          .nll_weight = loss.nll_weight,
          .nll_mean = loss.nll_mean};
}

}  // namespace

Result<> CpoLoss::validate() const {
  auto valid = as_simpo(*this).validate();
  if (!valid)
    return fail(valid.error().code,
                cat("cpo.", valid.error().what.substr(std::string_view("simpo.").size())));
  return {};
}

Expr CpoLoss::per_pair(const Two& x) const {
  return as_simpo(*this).per_pair(x);
}

Expr CpoLoss::operator()(const TokenStats& now, const engine::data::Experience& b,
                         Report& report) const {
  const Expr total = weighted_sum(now.logp, b.mask, b.offsets);
  return as_simpo(*this).of(
      split(kind == CpoLossKind::ipo ? total / weight_of(b.mask, b.offsets) : total), now, b,
      report);
}

}  // namespace troupe::algorithms
