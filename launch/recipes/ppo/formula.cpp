// PPO's losses and rewards in words, with the run's own numbers.
#include "engine/base/text.h"
#include "launch/config/fields.h"
#include "launch/recipes/ppo/ppo.h"
#include "launch/recipes/sampling/sampling.h"

namespace troupe::launch {
namespace {

std::string average(const PpoConfig& p) {
  if (p.aggregation == "grpo") return "mean over samples of the mean over their tokens of l";
  if (p.aggregation == "dapo")
    return "sum over the tokens of the update of l  /  tokens of an update on average";
  if (p.aggregation == "seq-mean-token-sum")
    return "mean over samples of the sum over their tokens of l";
  return "mean over the tokens of the update of l";
}

std::string kl(const PpoConfig& p) {
  const std::string plain = p.kl.substr(0, 2);
  const std::string text = plain == "k1"   ? "x"
                           : plain == "k2" ? "x^2 / 2"
                           : p.kl == "abs" ? "|x|"
                                           : "(exp(-x) - 1 + x)";
  return p.kl.ends_with('+') ? cat(text, " (gradient of x^2 / 2)") : text;
}

std::string policy(const PpoConfig& p) {
  std::string clipped = cat("- min(rho A, clip(rho, ", to_text(1 - p.clip_low), ", ",
                            to_text(1 + p.clip_high), ") A)");
  if (p.dual_clip > 0) clipped += cat(" (at most ", to_text(p.dual_clip), " |A| where A < 0)");
  if (p.kl_coef != 0 && p.kl_place == "loss") clipped += cat(" + ", to_text(p.kl_coef), " ", kl(p));
  if (p.entropy_coef != 0) clipped += cat(" - ", to_text(p.entropy_coef), " H");
  return clipped;
}

std::string rewards(const PpoConfig& p) {
  std::string text = "r = ";
  if (p.kl_coef != 0 && p.kl_place == "reward")
    text += cat("- ", to_text(p.kl_coef), " ", kl(p), " + ");
  text += p.score_place == "last" ? "R at the last token" : "R one step after the end";
  if (p.missing_eos_penalty != 0)
    text += cat(" - ", to_text(p.missing_eos_penalty), " where it did not end");
  text +=
      cat(" + process rewards", p.step_baseline != 0 ? cat(" - ", to_text(p.step_baseline)) : "",
          " at the ends of their steps");
  return text + (p.credit == "min"
                     ? cat(", weighed by softmax(-r / ", to_text(p.credit_temperature), ")")
                     : std::string());
}

}  // namespace

std::string ppo_formula(const RunConfig& config) {
  const PpoConfig& p = config.ppo;
  const CriticConfig& c = config.critic;
  std::string text = cat("L = ", average(p), "\nl = ", policy(p),
                         "\nrho = p(t) / p_old(t), p_old: the weights that sampled t\n");
  text += cat("A = sum over k of (", to_text(p.gamma), " x ", to_text(p.lambda), ")^k (r + ",
              to_text(p.gamma), " V_next - V) of the k-th token on",
              p.whiten_advantages ? ", whitened over the round\n" : "\n");
  text += rewards(p) + "\n";
  const std::string clip = to_text(c.value_clip);
  const std::string held =
      cat("max((V - G)^2, (clip(V, V_old - ", clip, ", V_old + ", clip, ") - G)^2)");
  text += cat("critic: ", to_text(c.loss_coef), " x mean over the tokens of 1/2 ",
              c.value_clip > 0 ? held : std::string("(V - G)^2"), ",  G = V_old + A",
              p.whiten_advantages ? " before whitening\n" : "\n");
  if (p.kl_coef != 0)
    text += cat("x = log p(t) - log p_ref(t),  p_ref: ",
                p.reference.empty() ? std::string("the starting weights") : p.reference, "\n");
  return text + reward_formula(config);
}

}  // namespace troupe::launch
