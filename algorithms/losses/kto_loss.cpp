#include "algorithms/losses/kto_loss.h"

#include <algorithm>

#include "algorithms/losses/pairs.h"
#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<KtoLoss>);

Expr KtoLoss::operator()(const TokenStats& now, const engine::data::Experience& b,
                         Report& report) const {
  check(b.reference_logp.size() == b.tokens.size(), "KtoLoss: reference_logp is missing");
  check(b.label.size() + 1 == b.offsets.size(), "KtoLoss: label is missing");
  const Expr good = b.label, bad = 1.0 - good;                                        // [N]
  const Expr logp = weighted_sum(now.logp, b.mask, b.offsets);                        // [N]
  const Expr u = weighted_sum(now.logp - Expr(b.reference_logp), b.mask, b.offsets);  // [N]
  const double z = kind == KtoLossKind::kto ? b.scale : 0;
  for (const auto& [side, of] : {std::pair{"chosen", good}, std::pair{"rejected", bad}}) {
    const double members = sum(of).value();
    if (members == 0) continue;
    report.mean(cat("rewards/", side), beta * sum(u * of).value(), members);
    report.mean(cat("logps/", side), sum(logp * of).value(), members);
  }
  report.mean("kl", z, 1);
  if (!now.entropy.empty()) report.mean("entropy", now.entropy, b.mask);
  const Expr desirable = 1.0 - sigmoid(beta * (u - z)), undesirable = 1.0 - sigmoid(beta * (z - u));
  return sum(desirable_weight * desirable * good + undesirable_weight * undesirable * bad) /
         b.count;
}

double mismatched_kl(const engine::data::Experience& b, const std::vector<float>& logp,
                     const std::vector<float>& reference_logp) {
  check(logp.size() == b.tokens.size() && reference_logp.size() == b.tokens.size(),
        "mismatched_kl: one number per token is needed");
  if (b.sequences() == 0) return 0;
  const double total =
      sum(weighted_sum(Expr(logp) - Expr(reference_logp), b.mask, b.offsets)).value();
  return std::max(total / b.sequences(), 0.0);
}

}  // namespace troupe::algorithms
