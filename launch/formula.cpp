#include "launch/formula.h"

#include "engine/base/text.h"

namespace troupe::launch {

namespace {

std::string sft(const RunConfig& config) {
  return cat(
      "L = - sum over trained tokens t of ", config.sft.loss == "dft" ? "sg(p(t)) " : "",
      "log p(t | the tokens before it)  /  trained tokens of the batch\n", "trained: ",
      config.sft.mask_prompt ? "the answers (every assistant turn); prompts only condition them" : "every token but the first of each row");
}

/// The loss of one pair, from the log-ratios c (chosen) and r (rejected).
std::string pair_loss(const DpoConfig& d) {
  const std::string beta = to_text(d.beta), half = to_text(1 / (2 * d.beta)), eps = to_text(d.label_smoothing),
                    rest = to_text(1 - d.label_smoothing);
  if (d.loss == "sigmoid") return cat("- log sigmoid(", beta, " (c - r))");
  if (d.loss == "cdpo") return cat("- ", rest, " log sigmoid(", beta, " (c - r)) - ", eps, " log sigmoid(-", beta, " (c - r))");
  if (d.loss == "robust") {
    return cat("( - ", rest, " log sigmoid(", beta, " (c - r)) + ", eps, " log sigmoid(-", beta, " (c - r)) ) / ",
               to_text(1 - 2 * d.label_smoothing));
  }
  if (d.loss == "hinge") return cat("max(0, 1 - ", beta, " (c - r))");
  if (d.loss == "ipo") return cat("( c / |y_w| - r / |y_l| - ", half, " )^2");
  if (d.loss == "ipo_sum") return cat("( c - r - ", half, " )^2");
  if (d.loss == "exo_pair") {
    return cat("sigmoid(m) (log sigmoid(m) - log ", rest, ") + sigmoid(-m) (log sigmoid(-m) - log ", eps, "),  m = ", beta, " (c - r)");
  }
  if (d.loss == "nca_pair") return cat("- log sigmoid(", beta, " c) - 0.5 log sigmoid(-", beta, " c) - 0.5 log sigmoid(-", beta, " r)");
  if (d.loss == "bco_pair") return cat("- log sigmoid(", beta, " c) - log sigmoid(-", beta, " r)");
  if (d.loss == "sppo_hard") return cat("(c - ", half, ")^2 + (r + ", half, ")^2");
  if (d.loss == "apo_zero") return cat("1 - sigmoid(", beta, " c) + sigmoid(", beta, " r)");
  if (d.loss == "apo_down") return cat("sigmoid(", beta, " c) + 1 - sigmoid(", beta, " (c - r))");
  if (d.loss == "discopop") {
    return cat("(1 - s) (- log sigmoid(m)) + s exp(-m),  m = ", beta, " (c - r),  s = sigmoid(m / ", to_text(d.discopop_tau), ")");
  }
  return cat("- log sigmoid(", beta, " (c / |y_w| - r / |y_l|))");  // sigmoid_norm
}

std::string dpo(const DpoConfig& d) {
  return cat("L = mean over pairs of ", pair_loss(d), "\n",
             "c = log p(y_w | x) - log p_ref(y_w | x),  r = the same of y_l  (sums over the answer's tokens)\n",
             "p_ref: ", d.reference.empty() ? std::string("the starting weights") : d.reference);
}

std::string average(const RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  if (g.aggregation == "grpo") return "mean over samples of the mean over their tokens of l";
  if (g.aggregation == "bnpo") return "mean over the tokens of the update of l";
  if (g.aggregation == "dapo") return "sum over the tokens of the update of l  /  tokens of all samples of the round";
  const double length = g.constant_length > 0 ? g.constant_length : static_cast<double>(config.rollout.max_new_tokens);
  return cat("mean over samples of the sum over their tokens of l  /  ", to_text(length));
}

std::string kl_term(const GrpoConfig& g) {
  const std::string x = g.kl == "k1" ? "x" : g.kl == "k2" ? "x^2 / 2" : g.kl == "abs" ? "|x|" : "(exp(-x) - 1 + x)";
  return cat(" + ", to_text(g.beta), " ", g.kl_times_ratio ? "rho " : "", x);
}

std::string advantage(const GrpoConfig& g) {
  if (g.scale_rewards == "none") return "A = R - mean of its group";
  return cat("A = (R - mean of its group) / (standard deviation of ", g.scale_rewards == "batch" ? "the batch" : "its group", " + 0.0001)");
}

std::string rewards(const std::vector<RewardRule>& rules) {
  std::vector<std::string> parts;
  for (const RewardRule& rule : rules) parts.push_back(cat(to_text(rule.weight), " ", rule.rule));
  return cat("R = ", join(parts, " + "));
}

std::string grpo(const RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  const std::string bounded = g.delta > 0 ? cat("min(rho, ", to_text(g.delta), ")") : "rho";
  std::string text =
      cat("L = ", average(config), "\nl = - min(", bounded, " A, clip(rho, ", to_text(1 - g.clip_low), ", ", to_text(1 + g.clip_high),
          ") A)", g.beta != 0 ? kl_term(g) : "", g.entropy_coef != 0 ? cat(" - ", to_text(g.entropy_coef), " H") : "", "\n");
  text += g.sequence_ratio ? "rho = exp(mean over the sample of log p(t) - log p_old(t))\n"
                           : "rho = p(t) / p_old(t), p_old: the weights that sampled t\n";
  if (g.beta != 0) text += cat("x = log p(t) - log p_ref(t),  p_ref: ", g.reference.empty() ? "the starting weights" : g.reference, "\n");
  return cat(text, advantage(g), ",  ", g.group_size, " samples a group\n", rewards(config.reward));
}

}  // namespace

std::string loss_formula(const RunConfig& config) {
  if (config.algorithm == "sft") return sft(config);
  return config.algorithm == "dpo" ? dpo(config.dpo) : grpo(config);
}

}  // namespace troupe::launch
