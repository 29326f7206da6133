// The loss and the advantages of a grpo run in words, with its own numbers.
#include "engine/base/text.h"
#include "launch/recipes/grpo/grpo.h"
#include "launch/recipes/sampling/sampling.h"

namespace troupe::launch {
namespace {

std::string average(const RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  if (g.aggregation == "grpo") return "mean over samples of the mean over their tokens of l";
  if (g.aggregation == "bnpo") return "mean over the tokens of the update of l";
  if (g.aggregation == "dapo")
    return "sum over the tokens of the update of l  /  tokens of all samples of the round";
  if (g.aggregation == "seq-mean-token-sum")
    return "mean over samples of the sum over their tokens of l";
  if (g.aggregation == "token-sum") return "sum over the tokens of the update of l";
  const double length = g.constant_length > 0 ? g.constant_length
                                              : static_cast<double>(config.rollout.max_new_tokens);
  return cat("mean over samples of the sum over their tokens of l  /  ", to_text(length));
}

std::string clipped(const GrpoConfig& g) {
  const std::string bounded = g.delta > 0 ? cat("min(rho, ", to_text(g.delta), ")") : "rho";
  const std::string text = cat("min(", bounded, " A, clip(rho, ", to_text(1 - g.clip_low), ", ",
                               to_text(1 + g.clip_high), ") A)");
  return g.dual_clip == 0 ? cat("- ", text)
                          : cat("min(- ", text, ", - ", to_text(g.dual_clip), " A where A < 0)");
}

std::string surrogate(const GrpoConfig& g) {
  const std::string low = to_text(1 - g.clip_low), high = to_text(1 + g.clip_high);
  if (g.policy_loss == "cispo")
    return cat("- constant(min(rho, ", to_text(g.clip_high), ")) A log p(t)");
  if (g.policy_loss == "cispo_band")
    return cat("- constant(clip(rho, ", low, ", ", high, ")) A log p(t)");
  if (g.policy_loss == "sapo")
    return cat("- 4 / tau sigmoid(tau (rho - 1)) A, tau = ", to_text(g.sapo_temperature_pos),
               " where A > 0, else ", to_text(g.sapo_temperature_neg));
  if (g.policy_loss == "vespo")
    return cat(
        "- constant(exp(lambda) w^k exp(-lambda w)) A log p(t), w the ratio of the whole answer, "
        "(k, lambda) = (",
        to_text(g.vespo_k_pos), ", ", to_text(g.vespo_lambda_pos), ") where A >= 0, else (",
        to_text(g.vespo_k_neg), ", ", to_text(g.vespo_lambda_neg), ")");
  if (g.policy_loss == "gmpo")
    return cat("- A (geometric mean over the answer of rho, each clipped to [exp(-",
               to_text(g.clip_low), "), exp(", to_text(g.clip_high), ")] on the side of A)");
  if (g.policy_loss == "dro")
    return cat("- (A log p(t) - ", to_text(g.dro_beta / 2), " (log rho)^2)");
  if (g.policy_loss == "dppo_tv")
    return cat("- constant(min(rho, 20)) A log p(t), 0 where p(t) - p_old(t) is above ",
               to_text(g.clip_high), " and A > 0, or below -", to_text(g.clip_low), " otherwise");
  const std::string covariance = "(A - mean A) (log p(t) - mean log p)";
  if (g.policy_loss == "clip_cov")
    return cat(clipped(g), ", 0 at ", to_text(100 * g.cov_ratio),
               " % of the tokens, drawn from those with ", covariance, " between ",
               to_text(g.cov_low), " and ", to_text(g.cov_high));
  if (g.policy_loss == "kl_cov")
    return cat("- rho A, and + ", to_text(g.cov_kl), " |log rho| at the ",
               to_text(100 * g.cov_ratio), " % of tokens with the greatest ", covariance);
  return clipped(g);
}

std::string weight(const GrpoConfig& g) {
  std::string text;
  if (g.correction != "none") text += "w ";
  if (g.top_entropy_quantile < 1)
    text += cat("[among the ", to_text(100 * g.top_entropy_quantile),
                " % of tokens with the most entropy] ");
  if (g.off_policy_mask > 0)
    text += cat("[A >= 0, or less than ", to_text(g.off_policy_mask),
                " nats a token less likely than when sampled] ");
  if (g.filter != "none" && g.filter_by != "k1")
    text += cat("[", g.filter_by == "k2" ? "y^2 / 2" : "e^y - 1 - y",
                ", y = log p_old(t) - log p_rollout(t), ",
                g.filter == "token"      ? "of the token"
                : g.filter == "sequence" ? "summed over the sample"
                : g.filter == "greatest" ? "the sample's greatest"
                                         : "the sample's mean",
                ", at most ", to_text(g.filter_high), "] ");
  if (g.filter != "none" && g.filter_by == "k1")
    text += cat("[ratio to the rollout, ", g.filter, ", within ", to_text(g.filter_low), " and ",
                to_text(g.filter_high), "] ");
  return text;
}

std::string estimator(const std::string& kl) {
  if (kl == "k2") return "x^2 / 2";
  if (kl == "k3") return "(exp(-x) - 1 + x)";
  if (kl == "abs") return "|x|";
  if (kl == "k1+") return "(x, with the gradient of x^2 / 2)";
  if (kl == "k3+") return "(exp(-x) - 1 + x, with the gradient of x^2 / 2)";
  return "x";
}

std::string ratio(const GrpoConfig& g) {
  if (g.proximal != "given")
    return cat(
        "rho = p(t) / p_old(t), p_old: ", g.proximal == "linear" ? "a mean" : "a geometric mean",
        " of p and of what sampled t, by the versions of their weights\n");
  if (g.ratio == "token") return "rho = p(t) / p_old(t), p_old: the weights that sampled t\n";
  if (g.ratio == "sequence_sum")
    return "rho = exp(sum over the sample of log p(t) - log p_old(t))\n";
  return cat("rho = exp(mean over the sample of log p(t) - log p_old(t))",
             g.ratio == "sequence_token" ? ", with the gradient of token t alone" : "", "\n");
}

std::string advantage(const GrpoConfig& g) {
  std::string text = "A = (R - mean of its group) / (standard deviation of its group + " +
                     to_text(g.advantage_eps) + ")";
  if (g.scale_rewards == "none") text = "A = R - mean of its group";
  if (g.scale_rewards == "batch")
    text = "A = (R - mean of its group) / (standard deviation of the batch + " +
           to_text(g.advantage_eps) + ")";
  if (g.normalize_each_reward)
    text =
        "A = weighted sum of the rules' rewards, each (r - mean) / deviation within its group, "
        "normalised over the round";
  if (g.estimator == "rloo") text = "A = R - mean of the others of its group";
  if (g.estimator == "loo_scaled")
    text = "A = (R - mean) / standard deviation of the others of its group";
  if (g.estimator == "reinforce_pp")
    text =
        cat("A(t) = sum over k >= 0 of ", to_text(g.gamma), "^k r(t + k), r: R at the last token");
  if (g.estimator == "remax") text = "A = R - R of the greedy answer";
  if (g.estimator == "pass_at_k")
    text =
        "A = (R - R of the second) / standard deviation of its group, for the best of its group "
        "alone";
  if (g.estimator == "opo") text = "A = R - mean of its group, weighed by length";
  if (g.estimator == "gpg")
    text = "A = (R - mean of its group) * samples / samples with R other than 0";
  if (g.estimator == "max_rl") text = "A = (R - mean of its group) / mean of its group";
  if (g.normalize_advantages == "samples")
    text += ",  then (A - mean) / standard deviation over the round's samples";
  if (g.normalize_advantages == "tokens")
    text += ",  then (A - mean) / standard deviation over the round's tokens";
  return text;
}

std::string shaping(const RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  std::string text;
  if (g.reward_beta != 0)
    text += cat("R: less ", to_text(g.reward_beta), " ", estimator(g.reward_kl),
                g.estimator == "reinforce_pp" ? " at each token" : " summed over its tokens", "\n");
  if (g.overlong_buffer > 0)
    text += cat("R: less ", to_text(g.overlong_factor), " (length - ",
                to_text(static_cast<double>(config.rollout.max_new_tokens) - g.overlong_buffer),
                ") / ", to_text(g.overlong_buffer), " for longer answers\n");
  if (g.dynamic_sampling)
    text += "groups with equal rewards are replaced by those of further prompts\n";
  return text;
}

}  // namespace

std::string grpo_formula(const RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  std::string text = cat("L = ", average(config), "\nl = ", weight(g), surrogate(g));
  if (g.beta != 0)
    text += cat(" + ", to_text(g.beta), " ", g.kl_times_ratio ? "rho " : "", estimator(g.kl));
  if (g.entropy_schedule == "adaptive")
    text +=
        cat(" - c H, c: ", to_text(g.entropy_coef), " at first, changed by ",
            to_text(g.entropy_delta), " towards H = ", to_text(g.entropy_target), ", 0 above it");
  else if (g.entropy_coef != 0)
    text += cat(" - ", to_text(g.entropy_coef), " H");
  text += cat("\n", ratio(g));
  if (g.correction != "none")
    text += cat("w = p_old(t) / p_rollout(t) over the ",
                g.correction == "token"      ? "token"
                : g.correction == "sequence" ? "sample"
                                             : "sample's geometric mean",
                ", ", g.correction_outside, " outside ", to_text(g.correction_low), " and ",
                g.correction_high > 0 ? to_text(g.correction_high) : "any", "\n");
  if (g.beta != 0 || g.reward_beta != 0)
    text += cat("x = log p(t) - log p_ref(t),  p_ref: ",
                g.reference.empty() ? "the starting weights" : g.reference, "\n");
  return cat(text, advantage(g), ",  ", g.group_size,
             g.group_size == 1 ? " sample a prompt\n" : " samples a group\n", shaping(config),
             reward_formula(config));
}

}  // namespace troupe::launch
