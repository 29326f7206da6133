#include "launch/recipes/grpo_formula.h"

#include "engine/base/text/text.h"
#include "launch/recipes/sampling.h"

namespace troupe::launch::recipes {
namespace {

using namespace algorithms;

std::string grpo_average(const config::RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  if (g.loss.aggregation == Aggregation::sequence)
    return "mean over samples of the mean over their tokens of l";
  if (g.loss.aggregation == Aggregation::token_local)
    return "mean over the tokens of the update of l";
  if (g.loss.aggregation == Aggregation::token_global)
    return "sum over the tokens of the update of l  /  tokens of all samples of the round";
  if (g.loss.aggregation == Aggregation::sequence_sum)
    return "mean over samples of the sum over their tokens of l";
  if (g.loss.aggregation == Aggregation::token_sum) return "sum over the tokens of the update of l";
  const double length = g.constant_length > 0
                            ? g.constant_length
                            : static_cast<double>(config.rollout.sampling.max_new_tokens);
  return cat("mean over samples of the sum over their tokens of l  /  ", to_text(length));
}

std::string clipped(const Surrogate& g) {
  const std::string bounded = g.delta > 0 ? cat("min(rho, ", to_text(g.delta), ")") : "rho";
  const std::string text = cat("min(", bounded, " A, clip(rho, ", to_text(1 - g.clip_low), ", ",
                               to_text(1 + g.clip_high), ") A)");
  return g.dual_clip == 0 ? cat("- ", text)
                          : cat("min(- ", text, ", - ", to_text(g.dual_clip), " A where A < 0)");
}

std::string surrogate(const Surrogate& g) {
  const std::string low = to_text(1 - g.clip_low), high = to_text(1 + g.clip_high);
  if (g.kind == SurrogateKind::cispo)
    return cat("- constant(min(rho, ", to_text(g.clip_high), ")) A log p(t)");
  if (g.kind == SurrogateKind::cispo_band)
    return cat("- constant(clip(rho, ", low, ", ", high, ")) A log p(t)");
  if (g.kind == SurrogateKind::sapo)
    return cat("- 4 / tau sigmoid(tau (rho - 1)) A, tau = ", to_text(g.sapo_temperature_pos),
               " where A > 0, else ", to_text(g.sapo_temperature_neg));
  if (g.kind == SurrogateKind::vespo)
    return cat(
        "- constant(exp(lambda) w^k exp(-lambda w)) A log p(t), w the ratio of the whole answer, "
        "(k, lambda) = (",
        to_text(g.vespo_k_pos), ", ", to_text(g.vespo_lambda_pos), ") where A >= 0, else (",
        to_text(g.vespo_k_neg), ", ", to_text(g.vespo_lambda_neg), ")");
  if (g.kind == SurrogateKind::gmpo)
    return cat("- A (geometric mean over the answer of rho, each clipped to [exp(-",
               to_text(g.clip_low), "), exp(", to_text(g.clip_high), ")] on the side of A)");
  if (g.kind == SurrogateKind::dro)
    return cat("- (A log p(t) - ", to_text(g.dro_beta / 2), " (log rho)^2)");
  if (g.kind == SurrogateKind::dppo_tv)
    return cat("- constant(min(rho, 20)) A log p(t), 0 where p(t) - p_old(t) is above ",
               to_text(g.clip_high), " and A > 0, or below -", to_text(g.clip_low), " otherwise");
  const std::string covariance = "(A - mean A) (log p(t) - mean log p)";
  if (g.kind == SurrogateKind::clip_cov)
    return cat(clipped(g), ", 0 at ", to_text(100 * g.cov_ratio),
               " % of the tokens, drawn from those with ", covariance, " between ",
               to_text(g.cov_low), " and ", to_text(g.cov_high));
  if (g.kind == SurrogateKind::kl_cov)
    return cat("- rho A, and + ", to_text(g.cov_kl), " |log rho| at the ",
               to_text(100 * g.cov_ratio), " % of tokens with the greatest ", covariance);
  return clipped(g);
}

std::string weight(const GrpoConfig& g) {
  const Correction& c = g.loss.correction;
  std::string text = weight_factor(c);
  if (g.loss.top_entropy_quantile < 1)
    text += cat("[among the ", to_text(100 * g.loss.top_entropy_quantile),
                " % of tokens with the most entropy] ");
  if (g.loss.off_policy_mask > 0)
    text += cat("[A >= 0, or less than ", to_text(g.loss.off_policy_mask),
                " nats a token less likely than when sampled] ");
  return text + filter_factor(c);
}

std::string kl_estimator(KlEstimator kl) {
  switch (kl) {
    case KlEstimator::k1:
      return "x";
    case KlEstimator::k2:
      return "x^2 / 2";
    case KlEstimator::k3:
      return "(exp(-x) - 1 + x)";
    case KlEstimator::abs:
      return "|x|";
    case KlEstimator::k1_plus:
      return "(x, with the gradient of x^2 / 2)";
    case KlEstimator::k3_plus:
      return "(exp(-x) - 1 + x, with the gradient of x^2 / 2)";
  }
  return "";
}

std::string ratio(const GrpoLoss& g) {
  if (g.proximal != Proximal::given)
    return cat("rho = p(t) / p_old(t), p_old: ",
               g.proximal == Proximal::linear ? "a mean" : "a geometric mean",
               " of p and the rollout policy, by the versions of their weights\n");
  if (g.ratio == RatioLevel::token)
    return "rho = p(t) / p_old(t), p_old: the weights that sampled t\n";
  if (g.ratio == RatioLevel::sequence_sum)
    return "rho = exp(sum over the sample of log p(t) - log p_old(t))\n";
  return cat("rho = exp(mean over the sample of log p(t) - log p_old(t))",
             g.ratio == RatioLevel::sequence_token ? ", with the gradient of token t alone" : "",
             "\n");
}

std::string advantage(const GrpoConfig& g) {
  const AdvantageConfig& a = g.advantage;
  std::string text =
      "A = (R - mean of its group) / (standard deviation of its group + " + to_text(a.eps) + ")";
  if (a.scale == GroupScale::none) text = "A = R - mean of its group";
  if (a.scale == GroupScale::batch)
    text =
        "A = (R - mean of its group) / (standard deviation of the batch + " + to_text(a.eps) + ")";
  if (g.normalize_each_reward)
    text =
        "A = weighted sum of the rules' rewards, each (r - mean) / std within its group, "
        "normalised over the round";
  if (a.estimator == Estimator::rloo) text = "A = R - mean of the others of its group";
  if (a.estimator == Estimator::loo_scaled)
    text = "A = (R - mean) / standard deviation of the others of its group";
  if (a.estimator == Estimator::reinforce_pp)
    text =
        cat("A(t) = sum over k >= 0 of ", to_text(a.gamma), "^k r(t + k), r: R at the last token");
  if (a.estimator == Estimator::remax) text = "A = R - R of the greedy answer";
  if (a.estimator == Estimator::pass_at_k)
    text =
        "A = (R - R of the second) / standard deviation of its group, for the best of its group "
        "alone";
  if (a.estimator == Estimator::opo) text = "A = R - mean of its group, weighed by length";
  if (a.estimator == Estimator::gpg)
    text = "A = (R - mean of its group) * samples / samples with R other than 0";
  if (a.estimator == Estimator::max_rl) text = "A = (R - mean of its group) / mean of its group";
  if (a.normalise == Normalise::samples)
    text += ",  then (A - mean) / standard deviation over the round's samples";
  if (a.normalise == Normalise::tokens)
    text += ",  then (A - mean) / standard deviation over the round's tokens";
  return text;
}

std::string shaping(const config::RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  const AdvantageConfig& a = g.advantage;
  const Shaping& s = g.shaping;
  std::string text;
  if (a.reward_beta != 0)
    text +=
        cat("R: less ", to_text(a.reward_beta), " ", kl_estimator(a.reward_kl),
            a.estimator == Estimator::reinforce_pp ? " at each token" : " summed over its tokens",
            "\n");
  if (s.overlong_buffer > 0)
    text += cat(
        "R: less ", to_text(s.overlong_factor), " (length - ",
        to_text(static_cast<double>(config.rollout.sampling.max_new_tokens) - s.overlong_buffer),
        ") / ", to_text(s.overlong_buffer), " for longer answers\n");
  if (g.dynamic.on) text += "groups with equal rewards are replaced by those of further prompts\n";
  return text;
}

}  // namespace

std::string grpo_formula(const config::RunConfig& config) {
  const GrpoConfig& g = config.grpo;
  std::string text =
      cat("L = ", grpo_average(config), "\nl = ", weight(g), surrogate(g.loss.surrogate));
  if (g.loss.beta != 0)
    text += cat(" + ", to_text(g.loss.beta), " ", g.loss.kl_times_ratio ? "rho " : "",
                kl_estimator(g.loss.kl));
  if (g.entropy.adaptive())
    text +=
        cat(" - c H, c: ", to_text(g.loss.entropy_coef), " at first, changed by ",
            to_text(g.entropy.delta), " towards H = ", to_text(g.entropy.target), ", 0 above it");
  else if (g.loss.entropy_coef != 0)
    text += cat(" - ", to_text(g.loss.entropy_coef), " H");
  text += cat("\n", ratio(g.loss));
  text += mask_formula(config);
  text += weight_definition(g.loss.correction);
  if (g.compares())
    text += cat("x = log p(t) - log p_ref(t),  p_ref: ",
                g.reference.empty() ? "the initial weights" : g.reference, "\n");
  return cat(text, advantage(g), ",  ", g.group,
             g.group == 1 ? " sample per prompt\n" : " samples per group\n", shaping(config),
             reward_formula(config));
}

}  // namespace troupe::launch::recipes
