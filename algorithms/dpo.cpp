#include "algorithms/dpo.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::algorithms {

static_assert(RowMethod<DpoConfig>);

namespace {

bool has_loss(const DpoLoss& d, std::initializer_list<DpoLossKind> kinds) {
  return std::ranges::any_of(
      d.kind, [&](const auto kind) { return std::ranges::find(kinds, kind) != kinds.end(); });
}

void validate_dpo_reference(const DpoConfig& d, SettingsReport& v) {
  if (v.streams() && d.precompute_reference)
    v.problem(cat(v.named("dpo.precompute_reference"),
                  ": scores every pair before the first step, and streamed data (data.stream) is "
                  "not available then; turn one of them off"));
  if (d.following.every > 0 && d.precompute_reference)
    v.problem(cat(
        v.named("dpo.precompute_reference"), ": a reference that is updated every ",
        d.following.every,
        " steps (dpo.sync_every) cannot be scored before the first one; turn one of the two off"));
}

/// Binary cross-entropy of beta z with label smoothing.
std::string smoothed_loss(const DpoLoss& d, const std::string& z) {
  const std::string beta = to_text(d.beta), eps = to_text(d.label_smoothing);
  if (d.label_smoothing == 0) return cat("- log sigmoid(", beta, " ", z, ")");
  return cat("- ", to_text(1 - d.label_smoothing), " log sigmoid(", beta, " ", z, ") - ", eps,
             " log sigmoid(-", beta, " ", z, ")");
}

/// The loss of one pair, from the scores c (chosen) and r (rejected).
std::string dpo_pair_loss(const DpoLoss& d, DpoLossKind kind) {
  const std::string beta = to_text(d.beta), half = to_text(1 / (2 * d.beta)),
                    eps = to_text(d.label_smoothing), rest = to_text(1 - d.label_smoothing);
  if (kind == DpoLossKind::sigmoid) return cat("- log sigmoid(", beta, " (c - r))");
  if (kind == DpoLossKind::cdpo) return smoothed_loss(d, "(c - r)");
  if (kind == DpoLossKind::robust) {
    return cat("( - ", rest, " log sigmoid(", beta, " (c - r)) + ", eps, " log sigmoid(-", beta,
               " (c - r)) ) / ", to_text(1 - 2 * d.label_smoothing));
  }
  if (kind == DpoLossKind::hinge) return cat("max(0, 1 - ", beta, " (c - r))");
  if (kind == DpoLossKind::ipo) return cat("( c / |y_w| - r / |y_l| - ", half, " )^2");
  if (kind == DpoLossKind::ipo_sum) return cat("( c - r - ", half, " )^2");
  if (kind == DpoLossKind::exo_pair) {
    return cat("sigmoid(m) (log sigmoid(m) - log ", rest, ") + sigmoid(-m) (log sigmoid(-m) - log ",
               eps, "),  m = ", beta, " (c - r)");
  }
  if (kind == DpoLossKind::nca_pair)
    return cat("- log sigmoid(", beta, " c) - 0.5 log sigmoid(-", beta, " c) - 0.5 log sigmoid(-",
               beta, " r)");
  if (kind == DpoLossKind::bco_pair)
    return cat("- log sigmoid(", beta, " c) - log sigmoid(-", beta, " r)");
  if (kind == DpoLossKind::sppo_hard) return cat("(c - ", half, ")^2 + (r + ", half, ")^2");
  if (kind == DpoLossKind::aot)
    return cat(smoothed_loss(d, "d"),
               ",  d = sort(log p(y_w) - log p(y_l)) - sort(the same of p_ref), over the batch");
  if (kind == DpoLossKind::aot_unpaired)
    return cat(smoothed_loss(d, "d"), ",  d = sort(c) - sort(r), over the batch");
  if (kind == DpoLossKind::apo_zero)
    return cat("1 - sigmoid(", beta, " c) + sigmoid(", beta, " r)");
  if (kind == DpoLossKind::apo_down)
    return cat("sigmoid(", beta, " c) + 1 - sigmoid(", beta, " (c - r))");
  if (kind == DpoLossKind::discopop) {
    return cat("(1 - s) (- log sigmoid(m)) + s exp(-m),  m = ", beta, " (c - r),  s = sigmoid(m / ",
               to_text(d.discopop_tau), ")");
  }
  if (kind == DpoLossKind::kto_pair)
    return cat("0.5 (1 - sigmoid(", beta, " (c - max(0, mean r)))) + 0.5 (1 - sigmoid(", beta,
               " (max(0, mean c) - r))), means over the batch");
  return cat("- log sigmoid(", beta, " (c / |y_w| - r / |y_l|))");  // sigmoid_norm
}

std::string weighted_term(double weight, const std::string& text) {
  return weight == 1 ? text : cat(to_text(weight), " [", text, "]");
}

// The score of a log-ratio x.
std::string dpo_scores(const DpoLoss& d) {
  if (d.divergence == DpoDivergence::forward_kl)
    return "c and r: 1 - e^-x of their log-ratio x (forward KL)\n";
  if (d.divergence == DpoDivergence::js_divergence)
    return "c and r: log 2 + log sigmoid(x) of their log-ratio x (Jensen-Shannon)\n";
  if (d.divergence == DpoDivergence::alpha_divergence && d.divergence_alpha != 1) {
    const std::string power = to_text(d.divergence_alpha - 1);
    return cat("c and r: (e^(", power, " x) - 1) / ", power,
               " of their log-ratio x (alpha divergence)\n");
  }
  return "";
}

}  // namespace

void DpoConfig::validate(SettingsReport& v) const {
  const DpoLoss& d = loss;
  v.check(d.validate());
  if (!has_loss(d, {DpoLossKind::discopop}))
    v.unused("dpo.discopop_tau", "only the loss discopop uses it");
  if (!has_loss(d, {DpoLossKind::sft})) v.unused("dpo.nll_mean", "only the loss sft uses it");
  if (d.divergence != DpoDivergence::alpha_divergence)
    v.unused("dpo.divergence_alpha", "only dpo.divergence = alpha_divergence uses it");
  validate_dpo_reference(*this, v);
  if (d.kind == std::vector{DpoLossKind::sft})
    v.warn(cat(v.named("dpo.loss"),
               ": the rejected answers and the reference have no effect then; --algorithm sft "
               "needs neither"));
  if (has_loss(d, {DpoLossKind::aot, DpoLossKind::aot_unpaired, DpoLossKind::kto_pair}) &&
      v.batch_size() < 2)
    v.problem(cat(v.named("train.batch_size"), ": ", name_of(d.kind.front()),
                  " compares the pairs of a batch: expected at least 2"));
}

std::string DpoConfig::formula() const {
  const DpoLoss& d = loss;
  std::vector<std::string> terms;
  std::string nll;
  for (std::size_t i = 0; i < d.kind.size(); ++i) {
    const double weight = d.weights.empty() ? 1 : d.weights.at(i);
    if (d.kind[i] == DpoLossKind::sft)
      nll = nll_formula(weight, d.nll_mean);
    else
      terms.push_back(weighted_term(weight, dpo_pair_loss(d, d.kind[i])));
  }
  std::string text = terms.empty() ? cat("L =", nll.substr(2))
                                   : cat("L = mean over pairs of ", d.weighting ? "w " : "",
                                         join(terms, " + "), nll);
  text +=
      "\nc = log p(y_w | x) - log p_ref(y_w | x),  r = the same of y_l  (sums over the answer's "
      "tokens";
  if (d.ld_alpha != 1)
    text += cat("; beyond the shorter one's length they weigh ", to_text(d.ld_alpha));
  text += cat(")\n", dpo_scores(d),
              "p_ref: ", reference.empty() ? std::string("the initial weights") : reference);
  if (following.every > 0)
    text += cat(", every ", following.every, " steps ", to_text(following.share), " p + ",
                to_text(1 - following.share), " p_ref (weights)");
  if (d.weighting)
    text +=
        "\nw = e^(mean over y_w's tokens of log p_t - log sum p^2) times the same of y_l, no "
        "gradient";
  return text + "\n";
}

PairTraining DpoConfig::training() const {
  DpoLoss unweighted = loss;
  unweighted.weighting = false;
  return {.loss = spec_of(loss),
          .held_out_loss = spec_of(unweighted),
          .reference = true,
          .precompute_reference = precompute_reference,
          .following = following};
}

}  // namespace troupe::algorithms
