#include "algorithms/losses/ppo_loss.h"

#include <cmath>

#include "algorithms/losses/ratio.h"
#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<PpoLoss>);

Result<> PpoLoss::validate() const {
  RETURN_IF_ERROR(surrogate.validate(name));
  RETURN_IF_ERROR(correction.validate(name));
  if (!(temperature > 0) || !std::isfinite(temperature))
    return fail(Errc::usage,
                cat("ppo.temperature: expected a number above 0, found ", temperature));
  return {};
}

Expr PpoLoss::operator()(const TokenStats& now, const engine::data::Experience& b,
                         Report& report) const {
  check(b.advantage.size() == b.tokens.size(), "PpoLoss: advantage is missing");
  check(kl_coef == 0 || b.reference_logp.size() == b.tokens.size(),
        "PpoLoss: reference_logp is missing");
  const bool approximated = proximal != Proximal::given;
  const Expr old =
      approximated
          ? Expr(proximal_logps(proximal, static_cast<std::int64_t>(version), now.logp.values(), b))
      : b.old_logp.empty() ? detach(now.logp)
                           : Expr(b.old_logp);
  const Expr change = log_ratio(RatioLevel::token, now.logp, old, b, log_ratio_limit);  // [T]
  Report of_surrogate;
  Expr loss = surrogate({now.logp, change, b.advantage, {}}, b, of_surrogate);
  report.merge(of_surrogate);
  if (const auto clipped = of_surrogate.statistics().find("clip_ratio/region_mean");
      clipped != of_surrogate.statistics().end())
    report.mean("policy/clipfrac_avg", clipped->second.sum, clipped->second.count);
  const auto& behaviour = approximated && b.rollout_logp.empty() ? b.old_logp : b.rollout_logp;
  if (correction.any() && !behaviour.empty())
    loss = loss * Expr(correction(old.values(), behaviour, b, report));
  report.mean("loss/policy_avg", loss, b.mask);
  report.mean("policy/approxkl_avg", square(change) / 2.0, b.mask);
  report.mean("actor/ppo_kl", -change, b.mask);
  report.mean(ratio_statistic, exp(change), b.mask);
  if (kl_coef != 0) {
    const Expr penalty =
        algorithms::kl(kl, where(b.mask, now.logp - b.reference_logp, 0.0), kl_clamp);
    report.mean("actor/kl_loss", penalty, b.mask);
    loss = loss + kl_coef * penalty;
  }
  report.mean("policy/entropy_avg", now.entropy, b.mask);
  if (!now.whole_entropy.empty())
    report.mean("policy/entropy_whole_vocabulary_avg", now.whole_entropy, b.mask);
  if (entropy_coef != 0) loss = loss - entropy_coef * where(b.mask, now.entropy, 0.0);
  return averaged(aggregation, loss, b);
}

}  // namespace troupe::algorithms
