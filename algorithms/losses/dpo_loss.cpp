#include "algorithms/losses/dpo_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {

using namespace engine::loss;

static_assert(Loss<DpoLoss>);

namespace {

using DpoLossKind = DpoLossKind;
using Experience = engine::data::Experience;

std::string_view word(DpoLossKind kind) {
  return names_of(kind)[static_cast<std::size_t>(kind)];
}

bool has(const std::vector<DpoLossKind>& kinds, std::initializer_list<DpoLossKind> wanted) {
  return std::ranges::any_of(
      kinds, [&](DpoLossKind kind) { return std::ranges::find(wanted, kind) != wanted.end(); });
}

// LD-DPO: lowers the weight of an answer's tokens beyond the length of the shorter answer of its
// pair.
std::vector<float> length_desensitized(const Experience& b, double ld_alpha) {
  std::vector<float> weight = b.mask;
  if (ld_alpha == 1) return weight;
  const auto trained = [&](std::size_t n) {
    return std::count_if(b.mask.begin() + b.offsets[n], b.mask.begin() + b.offsets[n + 1],
                         [](float m) { return m != 0; });
  };
  for (std::size_t n = 0; n + 1 < b.offsets.size(); ++n) {
    const auto shared = std::min(trained(n), trained(n ^ 1));
    std::ptrdiff_t place = 0;
    for (auto t = static_cast<std::size_t>(b.offsets[n]);
         t < static_cast<std::size_t>(b.offsets[n + 1]); ++t)
      if (b.mask[t] != 0 && ++place > shared)
        weight[t] = static_cast<float>(static_cast<double>(weight[t]) * ld_alpha);
  }
  return weight;
}

// WPO, eq. 2: exp of the mean over an answer's tokens of log p_t - log sum p^2. [N/2], no gradient.
Expr pair_weights(const TokenStats& now, const Experience& b) {
  const Expr aligned =
      weighted_sum(now.logp - now.collision, b.mask, b.offsets) / weight_of(b.mask, b.offsets);
  const Two weight = split(exp(aligned));
  return detach(weight.chosen * weight.rejected);
}

}  // namespace

Needs DpoLoss::needs() const {
  return {.entropy = true,
          .collision = weighting,
          .reference = true,
          .whole_batch =
              has(kind, {DpoLossKind::aot, DpoLossKind::aot_unpaired, DpoLossKind::kto_pair}) ||
              (weighting && has(kind, {DpoLossKind::sft}))};
}

Result<> DpoLoss::validate() const {
  const auto wrong = [](auto... words) { return fail(Errc::usage, cat("dpo.", words...)); };
  if (kind.empty()) return wrong("loss: expected at least one, found none");
  if (!weights.empty() && weights.size() != kind.size())
    return wrong("loss_weights: expected one for each of the ", kind.size(),
                 " losses, or none, found ", weights.size());
  if (label_smoothing != 0 &&
      !has(kind, {DpoLossKind::cdpo, DpoLossKind::robust, DpoLossKind::exo_pair, DpoLossKind::aot,
                  DpoLossKind::aot_unpaired}))
    return wrong("label_smoothing: ", word(kind.front()), " does not use it (found ",
                 label_smoothing, "); choose the kind cdpo or robust, or 0");
  if (label_smoothing == 0 && has(kind, {DpoLossKind::exo_pair}))
    return wrong("label_smoothing: exo_pair needs a number above 0 (1e-3 is usual), found 0");
  for (const DpoLossKind each : kind)
    if (divergence != DpoDivergence::reverse_kl &&
        has({each}, {DpoLossKind::nca_pair, DpoLossKind::bco_pair, DpoLossKind::sppo_hard,
                     DpoLossKind::aot, DpoLossKind::aot_unpaired, DpoLossKind::apo_zero,
                     DpoLossKind::apo_down, DpoLossKind::kto_pair}))
      return wrong("divergence: ", word(each),
                   " reads each answer's log-ratio alone and supports only reverse_kl, found ",
                   names_of(divergence)[static_cast<std::size_t>(divergence)]);
  if (weighting && has(kind, {DpoLossKind::aot, DpoLossKind::aot_unpaired, DpoLossKind::kto_pair}))
    return wrong(
        "weighting: the kinds aot, aot_unpaired and kto_pair mix the pairs of a batch, so the "
        "weight of a pair cannot be applied");
  return {};
}

Expr DpoLoss::operator()(const TokenStats& now, const Experience& b, Report& report) const {
  check(b.reference_logp.size() == b.tokens.size(), "DpoLoss: reference_logp is missing");
  const auto weight = length_desensitized(b, ld_alpha);
  const Terms terms{split(weighted_sum(now.logp, weight, b.offsets)),
                    split(weighted_sum(b.reference_logp, weight, b.offsets)),
                    split(weight_of(b.mask, b.offsets))};
  const Two log_ratio{terms.now.chosen - terms.reference.chosen,
                      terms.now.rejected - terms.reference.rejected};
  report_pairs(report, {beta * log_ratio.chosen, beta * log_ratio.rejected}, terms.now);
  if (!now.entropy.empty()) report.mean("entropy", now.entropy, b.mask);
  const Expr by_pair = weighting ? pair_weights(now, b) : Expr(1.0);
  Expr loss = 0.0;
  for (std::size_t i = 0; i < kind.size(); ++i) {
    const double share = weights.empty() ? 1 : weights[i];
    if (kind[i] == DpoLossKind::sft) {
      const Expr nll = nll_of_chosen(now.logp, b, nll_mean, report);
      loss = loss + share * (weighting ? nll * (sum(by_pair) / b.count) : nll);
    } else {
      loss = loss + share * (sum(per_pair(kind[i], terms) * by_pair) / b.count);
    }
  }
  return loss;
}

namespace {

// f'(e^x) - f'(1). The exponent of alpha is clipped so that its power is finite in float32, as in
// TRL.
Expr score(const Expr& x, DpoDivergence divergence, double alpha) {
  switch (divergence) {
    case DpoDivergence::reverse_kl:
      return x;
    case DpoDivergence::forward_kl:
      return 1.0 - exp(-x);
    case DpoDivergence::js_divergence:
      return std::log(2.0) + log_sigmoid(x);
    case DpoDivergence::alpha_divergence:
      if (std::abs(alpha - 1) < 1e-6) return x;
      return (exp(clip((alpha - 1) * x, -std::numeric_limits<double>::infinity(), 80)) - 1.0) /
             (alpha - 1);
  }
  check(false, "DpoLoss: a divergence without a formula");
  return {};
}

// Batch estimate of the KL divergence, at least 0.
Expr mean_kl(const Expr& log_ratio) {
  return max(mean(log_ratio), 0.0);
}

// Losses of the margin beta * (c - r).
Expr margin_loss(const DpoLoss& loss, DpoLossKind kind, const Expr& margin) {
  const double eps = loss.label_smoothing;
  const Expr won = -log_sigmoid(margin), lost = -log_sigmoid(-margin);
  const Expr mixing = sigmoid(margin / loss.discopop_tau);
  switch (kind) {
    case DpoLossKind::sigmoid:
      return won;  // arXiv:2305.18290
    case DpoLossKind::cdpo:
      return smoothed(margin, eps);  // ericmitchell.ai/cdpo.pdf
    case DpoLossKind::robust:
      return ((1 - eps) * won - eps * lost) / (1 - 2 * eps);  // arXiv:2403.00409
    case DpoLossKind::hinge:
      return relu(1.0 - margin);  // SLiC-HF, arXiv:2305.10425
    case DpoLossKind::exo_pair:   // arXiv:2402.00856, eq. 16
      return sigmoid(margin) * (-won - std::log(1 - eps)) +
             sigmoid(-margin) * (-lost - std::log(eps));
    case DpoLossKind::discopop:
      return (1.0 - mixing) * won + mixing * exp(-margin);  // arXiv:2406.08414
    default:
      break;
  }
  check(false, "DpoLoss: not a loss of the margin");
  return {};
}

// Losses of each answer's log-ratio to the reference: c of the chosen one, r of the rejected one.
Expr answer_loss(const DpoLoss& loss, DpoLossKind kind, const Expr& c, const Expr& r) {
  const double beta = loss.beta, eps = loss.label_smoothing;
  switch (kind) {
    case DpoLossKind::nca_pair:  // arXiv:2402.05369
      return -log_sigmoid(beta * c) - 0.5 * log_sigmoid(-beta * c) - 0.5 * log_sigmoid(-beta * r);
    case DpoLossKind::bco_pair:
      return -log_sigmoid(beta * c) - log_sigmoid(-beta * r);  // arXiv:2404.04656, no running shift
    case DpoLossKind::sppo_hard:
      return square(c - 0.5 / beta) + square(r + 0.5 / beta);  // arXiv:2405.00675
    case DpoLossKind::aot_unpaired:
      return smoothed(beta * (sorted(c) - sorted(r)), eps);  // arXiv:2406.05882, unpaired
    case DpoLossKind::apo_zero:
      return 1.0 - sigmoid(beta * c) + sigmoid(beta * r);  // arXiv:2408.06266, eq. 7
    case DpoLossKind::kto_pair:  // arXiv:2402.01306, of pairs; half: a mean over both answers
      return 0.5 * (1.0 - sigmoid(beta * (c - mean_kl(r)))) +
             0.5 * (1.0 - sigmoid(beta * (mean_kl(c) - r)));
    default:
      break;
  }
  check(false, "DpoLoss: not a loss of an answer's log-ratio");
  return {};
}

}  // namespace

Expr DpoLoss::per_pair(DpoLossKind which, const Terms& t) const {
  const Expr c = t.now.chosen - t.reference.chosen, r = t.now.rejected - t.reference.rejected;
  const Expr sc = score(c, divergence, divergence_alpha),
             sr = score(r, divergence, divergence_alpha);
  const Expr margin = beta * (sc - sr), by_length = sc / t.length.chosen - sr / t.length.rejected;
  switch (which) {
    case DpoLossKind::ipo:
      return square(by_length - 1 / (2 * beta));  // arXiv:2310.12036, by length
    case DpoLossKind::ipo_sum:
      return square(sc - sr - 1 / (2 * beta));  // arXiv:2310.12036, eq. 17
    case DpoLossKind::sigmoid_norm:
      return -log_sigmoid(beta * by_length);  // Tülu 3, arXiv:2411.15124
    case DpoLossKind::apo_down:
      return sigmoid(beta * c) + 1.0 - sigmoid(margin);  // arXiv:2408.06266, eq. 8
    case DpoLossKind::aot:                               // arXiv:2406.05882, paired
      return smoothed(beta * (sorted(t.now.chosen - t.now.rejected) -
                              sorted(t.reference.chosen - t.reference.rejected)),
                      label_smoothing);
    case DpoLossKind::nca_pair:
    case DpoLossKind::bco_pair:
    case DpoLossKind::sppo_hard:
    case DpoLossKind::aot_unpaired:
    case DpoLossKind::apo_zero:
    case DpoLossKind::kto_pair:
      return answer_loss(*this, which, c, r);
    case DpoLossKind::sft:
      check(false, "DpoLoss: sft is no loss of pairs");  // nll_of_chosen
      return {};
    default:
      return margin_loss(*this, which, margin);
  }
}

}  // namespace troupe::algorithms
