#include "algorithms/losses/grpo_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/losses/token_masks.h"
#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<GrpoLoss>);

namespace {

using engine::data::Experience;

void report_ratio(const Expr& log_ratio, const Experience& b, Report& report) {
  const Expr ratio = exp(detach(log_ratio));
  report.mean("ppo_kl", -log_ratio, b.mask);
  report.mean("ratio/mean", ratio, b.mask);
  double minimum = std::numeric_limits<double>::infinity(), maximum = -minimum;
  const auto values = ratio.values();
  for (std::size_t t = 0; t < values.size(); ++t)
    if (b.mask[t] != 0) {
      minimum = std::min(minimum, values[t]);
      maximum = std::max(maximum, values[t]);
    }
  if (minimum > maximum) return;
  report.min("ratio/min", minimum);
  report.max("ratio/max", maximum);
}

const std::vector<float>& behaviour_of(const Experience& b) {
  return b.rollout_logp.empty() ? b.old_logp : b.rollout_logp;
}

// [T] log-probabilities of the proximal policy: the denominator of rho.
Expr proximal_of(const GrpoLoss& loss, const Expr& logp, const Experience& b) {
  if (loss.proximal == Proximal::given) return b.old_logp.empty() ? detach(logp) : Expr(b.old_logp);
  return proximal_logps(loss.proximal, static_cast<std::int64_t>(loss.version), logp.values(), b);
}

// [T] factor of each token's surrogate: the off-policy mask, the entropy mask and the correction.
Expr weight_of(const GrpoLoss& loss, const TokenStats& now, const std::vector<double>& correction,
               const Experience& b) {
  Expr weight = 1.0;
  if (loss.off_policy_mask > 0 && !behaviour_of(b).empty())
    weight = weight * algorithms::off_policy_mask(now.logp.values(), behaviour_of(b), b,
                                                  loss.off_policy_mask);
  if (loss.top_entropy_quantile < 1)
    weight = weight * top_entropy_mask(now.entropy.values(), b.mask, loss.top_entropy_quantile);
  if (!correction.empty() && loss.surrogate.kind != SurrogateKind::vespo)
    weight = weight * correction;  // VESPO has it in phi
  return weight;
}

std::vector<double> logs(std::vector<double> values) {
  for (double& value : values) value = std::log(value);
  return values;
}

Result<> refused(const char* key, std::string expected) {
  return fail(Errc::usage, cat("grpo.", key, ": ", expected));
}

}  // namespace

Result<> GrpoLoss::validate() const {
  RETURN_IF_ERROR(surrogate.validate(name));
  RETURN_IF_ERROR(correction.validate(name));
  if (surrogate.wants_token_ratio() && ratio != RatioLevel::token)
    return refused("ratio", cat("expected token: ",
                                names_of(surrogate.kind)[static_cast<std::size_t>(surrogate.kind)],
                                " starts from the ratios of tokens"));
  if (surrogate.kind == SurrogateKind::vespo && correction.filter != FilterOver::none)
    return refused("filter", "expected none: vespo weighs whole samples by itself");
  if (!(temperature > 0) || !std::isfinite(temperature))
    return refused("temperature", cat("expected a number above 0, found ", temperature));
  return {};
}

bool GrpoLoss::advantage_is_all() const {
  return beta == 0 && entropy_coef == 0 && top_entropy_quantile == 1 &&
         surrogate.advantage_is_all();
}

Expr GrpoLoss::operator()(const TokenStats& now, const Experience& b, Report& report) const {
  check(b.advantage.size() == b.tokens.size(), "GrpoLoss: advantage is missing");
  check(beta == 0 || b.reference_logp.size() == b.tokens.size(),
        "GrpoLoss: reference_logp is missing");
  const Expr old = proximal_of(*this, now.logp, b);
  const Expr logp = where(b.mask, now.logp, 0.0),
             log_rho = log_ratio(ratio, now.logp, old, b, log_ratio_limit);  // [T]
  std::vector<double> corrected;
  if (correction.any() && !behaviour_of(b).empty())
    corrected = correction(old.values(), behaviour_of(b), b, report);
  const PolicyTerms terms{logp, log_rho, Expr(b.advantage),
                          corrected.empty() ? corrected : logs(corrected)};
  Expr loss = surrogate(terms, b, report) * weight_of(*this, now, corrected, b);
  report.mean("policy_loss", loss, b.mask);
  if (beta != 0) {
    const Expr plain =
        algorithms::kl(kl, where(b.mask, now.logp - b.reference_logp, 0.0), kl_clamp);
    const Expr penalty = kl_times_ratio ? plain * exp(log_rho) : plain;
    report.mean("kl", penalty, b.mask);
    loss = loss + beta * penalty;
  }
  if (entropy_coef != 0) loss = loss - entropy_coef * where(b.mask, now.entropy, 0.0);
  if (!now.entropy.empty()) report.mean(entropy_statistic, now.entropy, b.mask);
  if (!now.whole_entropy.empty())
    report.mean("entropy_whole_vocabulary", now.whole_entropy, b.mask);
  report_ratio(log_rho, b, report);
  return averaged(aggregation, loss, b);
}

}  // namespace troupe::algorithms
