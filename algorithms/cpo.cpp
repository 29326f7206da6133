#include "algorithms/cpo.h"

#include "engine/base/text/text.h"

namespace troupe::algorithms {

static_assert(RowMethod<CpoConfig>);

void CpoConfig::validate(SettingsReport& v) const {
  const CpoLoss& c = loss;
  v.check(c.validate());
  if (c.nll_weight == 0) {
    v.unused("cpo.nll_mean", "there is no likelihood term: cpo.nll_weight is 0");
    v.warn(cat(v.named("cpo.nll_weight"),
               ": nothing keeps the policy near its initial weights then: CPO has no reference"));
  }
}

std::string CpoConfig::formula() const {
  const CpoLoss& c = loss;
  const std::string beta = to_text(c.beta), eps = to_text(c.label_smoothing);
  std::string pair = cat("- log sigmoid(", beta, " (x_w - x_l))");
  if (c.label_smoothing > 0)
    pair = cat("- ", to_text(1 - c.label_smoothing), " log sigmoid(", beta, " (x_w - x_l)) - ", eps,
               " log sigmoid(-", beta, " (x_w - x_l))");
  if (c.kind == CpoLossKind::hinge) pair = cat("max(0, 1 - ", beta, " (x_w - x_l))");
  if (c.kind == CpoLossKind::ipo) pair = cat("(x_w - x_l - ", to_text(1 / (2 * c.beta)), ")^2");
  std::string x =
      cat(c.kind == CpoLossKind::ipo ? "mean" : "sum", " over the answer's tokens of log p");
  if (c.alpha != 0)
    x = cat("(1 - e^(-", to_text(c.alpha), " a)) / ", to_text(c.alpha), ",  a = ", x);
  return cat("L = mean over pairs of ", pair, nll_formula(c.nll_weight, c.nll_mean), "\nx = ", x,
             "\n");
}

PairTraining CpoConfig::training() const {
  return {.loss = spec_of(loss), .held_out_loss = spec_of(loss)};
}

}  // namespace troupe::algorithms
