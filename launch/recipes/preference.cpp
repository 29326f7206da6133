#include "launch/recipes/preference.h"

#include <algorithm>

#include "engine/base/text.h"
#include "launch/recipes/held_out.h"

namespace troupe::launch {
namespace {

using algorithms::CpoLossKind;
using algorithms::DpoDivergence;
using algorithms::DpoLoss;
using algorithms::DpoLossKind;
using algorithms::NllMean;
using algorithms::SimpoLossKind;

/// "+ 0.5 mean over the chosen answers' tokens of - log p"; empty if the weight is 0.
std::string nll_formula(double weight, NllMean mean) {
  if (weight == 0) return "";
  const char* over = mean == NllMean::token ? "the chosen answers' tokens"
                                            : "the chosen answers, each by its tokens' mean,";
  return cat(" + ", weight == 1 ? std::string() : to_text(weight) + " ", "mean over ", over,
             " of - log p");
}

template <class Settings, class Algorithm>
int run_on_pairs(RunContext& context, const Settings& settings, Algorithm&& algorithm,
                 bool nll_on_prompt = false) {
  auto data = context.loader<engine::data::PairExample>(context.data_options());
  return run_on_rows(context, data, settings, held_out_pairs(context, nll_on_prompt), algorithm);
}

bool has_loss(const DpoLoss& d, std::initializer_list<DpoLossKind> kinds) {
  return std::ranges::any_of(
      d.kind, [&](const auto kind) { return std::ranges::find(kinds, kind) != kinds.end(); });
}

RolesNeeded dpo_roles(const RunConfig& config) {
  return {.reference = {true}, .reference_follows = config.dpo.following.every > 0};
}

void validate_dpo_reference(Validation& v) {
  const algorithms::DpoConfig& d = v.config.dpo;
  validate_following(v, "dpo.sync_every", d.following.every);
  if (d.following.every == 0)
    v.unused("dpo.sync_share", "the reference is not updated: dpo.sync_every is 0");
  if (v.config.data.stream && d.precompute_reference)
    v.problem(cat(v.named("dpo.precompute_reference"),
                  ": scores every pair before the first step, and streamed data (data.stream) is "
                  "not available then; turn one of them off"));
  if (d.following.every > 0 && d.precompute_reference)
    v.problem(cat(
        v.named("dpo.precompute_reference"), ": a reference that is updated every ",
        d.following.every,
        " steps (dpo.sync_every) cannot be scored before the first one; turn one of the two off"));
}

void validate_dpo(Validation& v) {
  const DpoLoss& d = v.config.dpo.loss;
  validate_eval(v);
  v.check(d.validate());
  if (!has_loss(d, {DpoLossKind::discopop}))
    v.unused("dpo.discopop_tau", "only the loss discopop uses it");
  if (!has_loss(d, {DpoLossKind::sft})) v.unused("dpo.nll_mean", "only the loss sft uses it");
  if (d.divergence != DpoDivergence::alpha_divergence)
    v.unused("dpo.divergence_alpha", "only dpo.divergence = alpha_divergence uses it");
  validate_dpo_reference(v);
  if (d.kind == std::vector{DpoLossKind::sft})
    v.warn(cat(v.named("dpo.loss"),
               ": the rejected answers and the reference have no effect then; --algorithm sft "
               "needs neither"));
  if (has_loss(d, {DpoLossKind::aot, DpoLossKind::aot_unpaired, DpoLossKind::kto_pair}) &&
      v.config.train.batch_size < 2)
    v.problem(cat(v.named("train.batch_size"), ": ", name_of(d.kind.front()),
                  " compares the pairs of a batch: expected at least 2"));
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

std::string dpo_formula(const RunConfig& config) {
  const algorithms::DpoConfig& dpo = config.dpo;
  const DpoLoss& d = dpo.loss;
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
  text +=
      cat(")\n", dpo_scores(d),
          "p_ref: ", dpo.reference.empty() ? std::string("the initial weights") : dpo.reference);
  if (dpo.following.every > 0)
    text += cat(", every ", dpo.following.every, " steps ", to_text(dpo.following.share), " p + ",
                to_text(1 - dpo.following.share), " p_ref (weights)");
  if (d.weighting)
    text +=
        "\nw = e^(mean over y_w's tokens of log p_t - log sum p^2) times the same of y_l, no "
        "gradient";
  return text + "\n";
}

int run_dpo(RunContext& context) {
  return run_on_pairs(context, context.config().dpo, algorithms::dpo);
}

void validate_simpo(Validation& v) {
  const algorithms::SimpoLoss& s = v.config.simpo;
  validate_eval(v);
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

std::string simpo_formula(const RunConfig& config) {
  const algorithms::SimpoLoss& s = config.simpo;
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

int run_simpo(RunContext& context) {
  return run_on_pairs(context, context.config().simpo, algorithms::simpo);
}

void validate_cpo(Validation& v) {
  const algorithms::CpoLoss& c = v.config.cpo;
  validate_eval(v);
  v.check(c.validate());
  if (c.nll_weight == 0) {
    v.unused("cpo.nll_mean", "there is no likelihood term: cpo.nll_weight is 0");
    v.warn(cat(v.named("cpo.nll_weight"),
               ": nothing keeps the policy near its initial weights then: CPO has no reference"));
  }
}

std::string cpo_formula(const RunConfig& config) {
  const algorithms::CpoLoss& c = config.cpo;
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

int run_cpo(RunContext& context) {
  return run_on_pairs(context, context.config().cpo, algorithms::cpo);
}

void validate_orpo(Validation& v) {
  validate_eval(v);
  v.check(v.config.orpo.loss.validate());
}

std::string orpo_formula(const RunConfig& config) {
  const algorithms::OrpoConfig& o = config.orpo;
  return cat("L = mean over the chosen answers' tokens",
             o.nll_on_prompt ? ", their prompts' too," : "",
             " of - log p  +  mean over pairs of - ", to_text(o.loss.beta),
             " log sigmoid(log odds(y_w) - log odds(y_l))\nlog odds(y) = x - log(1 - e^x),  x = "
             "mean over the answer's tokens of ",
             "log p\n");
}

int run_orpo(RunContext& context) {
  const algorithms::OrpoConfig& settings = context.config().orpo;
  return run_on_pairs(context, settings, algorithms::orpo, settings.nll_on_prompt);
}

}  // namespace

Recipe dpo_recipe() {
  return {.name = "dpo",
          .summary =
              "direct preference optimization: prefer the chosen answer of each pair to the "
              "rejected one",
          .sections = {"dpo", "eval"},
          .rows = engine::data::Purpose::pairs,
          .roles = dpo_roles,
          .validate = validate_dpo,
          .formula = dpo_formula,
          .run = run_dpo,
          .reference = [](const RunConfig& config) { return config.dpo.reference; }};
}

Recipe simpo_recipe() {
  return {.name = "simpo",
          .summary =
              "SimPO: prefer the chosen answer by its mean log-probability, without a reference "
              "(AlphaPO with simpo.alpha)",
          .sections = {"simpo", "eval"},
          .rows = engine::data::Purpose::pairs,
          .validate = validate_simpo,
          .formula = simpo_formula,
          .run = run_simpo};
}

Recipe cpo_recipe() {
  return {.name = "cpo",
          .summary =
              "contrastive preference optimization: prefer the chosen answer and keep it likely, "
              "without a reference",
          .sections = {"cpo", "eval"},
          .rows = engine::data::Purpose::pairs,
          .validate = validate_cpo,
          .formula = cpo_formula,
          .run = run_cpo};
}

Recipe orpo_recipe() {
  return {.name = "orpo",
          .summary =
              "odds ratio preference optimization: fine-tune on the chosen answers and raise their "
              "odds, without a reference",
          .sections = {"orpo", "eval"},
          .rows = engine::data::Purpose::pairs,
          .validate = validate_orpo,
          .formula = orpo_formula,
          .run = run_orpo};
}

}  // namespace troupe::launch
