#include "algorithms/losses/surrogate.h"

#include <cmath>
#include <limits>

#include "algorithms/losses/token_masks.h"
#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {

using namespace engine::loss;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

Result<> Surrogate::validate(std::string_view section) const {
  const auto wrong = [&](const char* key, const char* expected, double found) {
    return fail(Errc::usage, cat(section, ".", key, ": expected ", expected, ", found ", found));
  };
  if (delta != 0 && !(delta > 1 + clip_high))
    return wrong("delta", "0 (none) or a number above 1 + clip_high", delta);
  if (dual_clip != 0 && !(dual_clip > 1))
    return wrong("dual_clip", "0 (none) or a number above 1", dual_clip);
  if (kind != SurrogateKind::clip && delta != 0)
    return wrong("delta", "0, as policy_loss is not clip", delta);
  if (kind != SurrogateKind::clip && dual_clip != 0)
    return wrong("dual_clip", "0, as policy_loss is not clip", dual_clip);
  if (!(cov_low < cov_high)) return wrong("cov_low", "a number below cov_high", cov_low);
  return {};
}

Expr Surrogate::clipped(const PolicyTerms& now, const engine::data::Experience& b,
                        Report& report) const {
  const Expr& a = now.advantage;
  const Expr ratio = exp(now.log_ratio);
  const Expr bounded = delta > 0 ? clip(ratio, -infinity, delta) : ratio;
  const Expr loss = -min(bounded * a, clip(ratio, 1 - clip_low, 1 + clip_high) * a);
  const Expr low = (ratio < 1 - clip_low) * (a < 0.0), high = (ratio > 1 + clip_high) * (a > 0.0);
  report.mean("clip_ratio/low_mean", low, b.mask);
  report.mean("clip_ratio/high_mean", high, b.mask);
  report.mean("clip_ratio/region_mean", low + high, b.mask);
  if (dual_clip == 0) return loss;
  const Expr maximum = -dual_clip * a;
  report.mean("clip_ratio/dual_mean", (loss > maximum) * (a < 0.0), b.mask);
  return where(a < 0.0, min(loss, maximum), loss);
}

Expr Surrogate::cispo(const PolicyTerms& now, const engine::data::Experience& b,
                      Report& report) const {
  const bool band = kind == SurrogateKind::cispo_band;
  const double low = band ? 1 - clip_low : -infinity, high = band ? 1 + clip_high : clip_high;
  const Expr ratio = detach(exp(now.log_ratio));
  report.mean("cispo_clip_ratio", (ratio > high) * (now.advantage > 0.0), b.mask);
  return -(clip(ratio, low, high) * now.advantage * now.logp);
}

Expr Surrogate::vespo(const PolicyTerms& now, const engine::data::Experience& b,
                      Report& report) const {
  const double minimum = std::log(1e-8);
  Expr log_w = sum_by_sequence(clip(detach(now.log_ratio), -20, 20) * b.mask, b.offsets);
  if (!now.log_weight.empty())
    log_w = log_w + sum_by_sequence(clip(Expr(now.log_weight), minimum, 20) * b.mask, b.offsets);
  log_w = spread(clip(log_w, minimum, 20), b.offsets);
  const Expr gains = Expr(1.0) - (now.advantage < 0.0);
  const Expr k = where(gains, vespo_k_pos, vespo_k_neg),
             lambda = where(gains, vespo_lambda_pos, vespo_lambda_neg);
  const Expr phi = detach(exp(lambda + k * log_w - lambda * exp(log_w)));
  report.mean("vespo/phi_seq_mean", mean_by_sequence(phi, b.mask, b.offsets));
  return -(phi * now.advantage * now.logp);
}

Expr Surrogate::gmpo(const PolicyTerms& now, const engine::data::Experience& b) const {
  const Expr sign = (now.advantage > 0.0) - (now.advantage < 0.0);
  const Expr minimum =
      sign * min(sign * now.log_ratio, sign * clip(now.log_ratio, -clip_low, clip_high));
  return -(now.advantage * exp(spread(mean_by_sequence(minimum, b.mask, b.offsets), b.offsets)));
}

Expr Surrogate::dppo_tv(const PolicyTerms& now, const engine::data::Experience& b,
                        Report& report) const {
  const Expr moved = exp(detach(now.logp)) - exp(detach(now.logp - now.log_ratio)),
             gains = now.advantage > 0.0;
  const Expr high = gains * (moved > clip_high), low = (Expr(1.0) - gains) * (moved < -clip_low);
  report.mean("clip_ratio/low_mean", low, b.mask);
  report.mean("clip_ratio/high_mean", high, b.mask);
  report.mean("clip_ratio/region_mean", low + high, b.mask);
  return -((Expr(1.0) - low - high) * clip(exp(detach(now.log_ratio)), 0, 20) * now.advantage *
           now.logp);
}

Expr Surrogate::clip_cov(const PolicyTerms& now, const engine::data::Experience& b,
                         Report& report) const {
  const Expr loss = clipped(now, b, report), ratio = exp(detach(now.log_ratio));
  const Expr taken =
      (ratio * now.advantage) > (clip(ratio, 1 - clip_low, 1 + clip_high) * now.advantage);
  const auto covariance = covariances(now.advantage.values(), now.logp.values(), b);
  const Expr chosen =
      drawn_covariances(covariance, taken.values(), b, cov_ratio, cov_low, cov_high);
  report.mean("clip_ratio/cov_mean", chosen, b.mask);
  return where(chosen, 0.0, loss);
}

Expr Surrogate::kl_cov(const PolicyTerms& now, const engine::data::Experience& b) const {
  const auto covariance = covariances(now.advantage.values(), now.logp.values(), b);
  return cov_kl * abs(now.log_ratio) * greatest_covariances(covariance, b, cov_ratio) -
         exp(now.log_ratio) * now.advantage;
}

Expr Surrogate::operator()(const PolicyTerms& now, const engine::data::Experience& b,
                           Report& report) const {
  switch (kind) {
    case SurrogateKind::clip:
      return clipped(now, b, report);
    case SurrogateKind::cispo:
    case SurrogateKind::cispo_band:
      return cispo(now, b, report);
    case SurrogateKind::sapo: {
      const Expr tau = where(now.advantage > 0.0, sapo_temperature_pos, sapo_temperature_neg);
      return -(4.0 / tau * sigmoid(tau * (exp(now.log_ratio) - 1.0)) * now.advantage);
    }
    case SurrogateKind::vespo:
      return vespo(now, b, report);
    case SurrogateKind::gmpo:
      return gmpo(now, b);
    case SurrogateKind::dro:
      return -(now.advantage * now.logp - dro_beta / 2 * square(now.log_ratio));
    case SurrogateKind::dppo_tv:
      return dppo_tv(now, b, report);
    case SurrogateKind::clip_cov:
      return clip_cov(now, b, report);
    case SurrogateKind::kl_cov:
      return kl_cov(now, b);
  }
  check(false, "Surrogate: a kind without a formula");
  return {};
}

}  // namespace troupe::algorithms
