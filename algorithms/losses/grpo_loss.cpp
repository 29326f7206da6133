#include "algorithms/losses/grpo_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<GrpoLoss>);

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void report_ratio(const Expr& ratio, const engine::data::Experience& b, Report& report) {
  report.mean("ratio/mean", ratio, b.mask);
  double least = infinity, greatest = -infinity;
  const auto values = ratio.values();
  for (std::size_t t = 0; t < values.size(); ++t)
    if (b.mask[t] != 0) least = std::min(least, values[t]), greatest = std::max(greatest, values[t]);
  if (least > greatest) return;
  report.least("ratio/min", least);
  report.greatest("ratio/max", greatest);
}

}  // namespace

Result<> GrpoLoss::validate() const {
  const auto wrong = [](const char* key, const char* expected, double found) {
    return fail(Errc::usage, cat("grpo.", key, ": expected ", expected, ", found ", found));
  };
  if (!(clip_low >= 0 && clip_low <= 1)) return wrong("clip_low", "a number from 0 to 1", clip_low);
  if (!(clip_high >= 0)) return wrong("clip_high", "a number of at least 0", clip_high);
  if (delta != 0 && !(delta > 1 + clip_high)) return wrong("delta", "0 (none) or a number above 1 + clip_high", delta);
  if (!(beta >= 0) || !std::isfinite(beta)) return wrong("beta", "a number of at least 0", beta);
  if (!std::isfinite(entropy_coef)) return wrong("entropy_coef", "a number", entropy_coef);
  if (!(temperature > 0) || !std::isfinite(temperature)) return wrong("temperature", "a number above 0", temperature);
  return {};
}

Expr GrpoLoss::operator()(const TokenStats& now, const engine::data::Experience& b, Report& report) const {
  check(b.advantage.size() == b.tokens.size(), "GrpoLoss: advantage is missing");
  check(beta == 0 || b.reference_logp.size() == b.tokens.size(), "GrpoLoss: reference_logp is missing");
  const Expr old = b.old_logp.empty() ? detach(now.logp) : Expr(b.old_logp);
  const Expr log_ratio = where(b.mask, now.logp - old, 0.0);  // [T]
  const Expr ratio = exp(sequence_ratio ? spread(mean_by_sequence(log_ratio, b.mask, b.offsets), b.offsets) : log_ratio);
  const Expr clipped = clip(ratio, 1 - clip_low, 1 + clip_high);
  const Expr bounded = delta > 0 ? clip(ratio, -infinity, delta) : ratio;
  Expr loss = -min(bounded * b.advantage, clipped * b.advantage);
  if (beta != 0) {
    const Expr plain = algorithms::kl(kl, where(b.mask, now.logp - b.reference_logp, 0.0));
    const Expr penalty = kl_times_ratio ? plain * ratio : plain;
    report.mean("kl", penalty, b.mask);
    loss = loss + beta * penalty;
  }
  if (entropy_coef != 0) loss = loss - entropy_coef * where(b.mask, now.entropy, 0.0);
  if (!now.entropy.empty()) report.mean("entropy", now.entropy, b.mask);
  const Expr low = (ratio < 1 - clip_low) * (Expr(b.advantage) < 0.0), high = (ratio > 1 + clip_high) * (Expr(b.advantage) > 0.0);
  report.mean("clip_ratio/low_mean", low, b.mask);
  report.mean("clip_ratio/high_mean", high, b.mask);
  report.mean("clip_ratio/region_mean", low + high, b.mask);
  report_ratio(ratio, b, report);
  const Expr total = aggregation == Aggregation::sequence ? sum(mean_by_sequence(loss, b.mask, b.offsets)) : sum(loss * b.mask);
  return total / (b.count * b.scale);
}

void set_constants(engine::data::Experience& update, GrpoLoss::Aggregation aggregation, double sampled_tokens, double longest) {
  using Aggregation = GrpoLoss::Aggregation;
  const double tokens = std::accumulate(update.mask.begin(), update.mask.end(), 0.0);
  update.scale = 1;
  update.count = update.sequences();
  if (aggregation == Aggregation::token_local) update.count = tokens;
  if (aggregation == Aggregation::token_global) update.count = sampled_tokens;
  if (aggregation == Aggregation::constant) update.scale = longest;
  if (update.count == 0) update.count = 1;
  check(update.scale > 0, "set_constants: the longest completion allowed is not known");
}

}  // namespace troupe::algorithms
