#include "algorithms/simpo.h"

#include "engine/base/text/text.h"

namespace troupe::algorithms {

static_assert(RowMethod<SimpoConfig>);

void SimpoConfig::validate(SettingsReport& v) const {
  const SimpoLoss& s = loss;
  v.check(s.validate());
  if (s.gamma >= 0 && v.given("simpo.gamma") && v.given("simpo.gamma_beta_ratio"))
    v.problem(cat(v.named("simpo.gamma"), ": ", v.named("simpo.gamma_beta_ratio"),
                  " sets the same margin in another unit (gamma = beta * gamma_beta_ratio); give "
                  "one of them"));
  if (s.margin() > 2)
    v.warn(
        cat("simpo: the target margin of the mean log-probabilities is ", to_text(s.margin()),
            " per token (gamma ", to_text(s.margin() * s.beta), " over beta ", to_text(s.beta),
            "); SimPO's authors use 0.25 to 1.6 (TRL's defaults, beta 0.1 with gamma 0.5, are 5)"));
  if (s.nll_weight > 0)
    v.warn(cat(v.named("simpo.nll_weight"),
               ": with a likelihood term this is CPO-SimPO, not SimPO (TRL's CPOTrainer adds it "
               "unless cpo_alpha is set to 0); set it to 0 for SimPO"));
  if (s.nll_weight == 0)
    v.unused("simpo.nll_mean", "there is no likelihood term: simpo.nll_weight is 0");
}

std::string SimpoConfig::formula() const {
  const SimpoLoss& s = loss;
  const std::string beta = to_text(s.beta), eps = to_text(s.label_smoothing);
  std::string pair = cat("- log sigmoid(", beta, " z)");
  if (s.label_smoothing > 0)
    pair = cat("- ", to_text(1 - s.label_smoothing), " log sigmoid(", beta, " z) - ", eps,
               " log sigmoid(-", beta, " z)");
  if (s.kind == SimpoLossKind::hinge) pair = cat("max(0, 1 - ", beta, " z)");
  if (s.kind == SimpoLossKind::ipo) pair = cat("(z - ", to_text(1 / (2 * s.beta)), ")^2");
  std::string x = "x = mean over the answer's tokens of log p";
  if (s.alpha != 0)
    x = cat("x = (1 - e^(-", to_text(s.alpha), " a)) / ", to_text(s.alpha),
            ",  a = mean over the answer's tokens of log p");
  return cat("L = mean over pairs of ", pair, nll_formula(s.nll_weight, s.nll_mean),
             "\nz = x_w - x_l - ", to_text(s.margin()),
             "   (gamma = ", to_text(s.margin() * s.beta), ")\n", x, "\n");
}

PairTraining SimpoConfig::training() const {
  return {.loss = spec_of(loss), .held_out_loss = spec_of(loss)};
}

}  // namespace troupe::algorithms
