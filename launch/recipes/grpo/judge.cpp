// What is wrong or odd with the keys of a grpo run together.
#include "engine/base/text.h"
#include "launch/recipes/grpo/grpo.h"
#include "launch/recipes/sampling/sampling.h"

namespace troupe::launch {
namespace {

bool trained_once(const GrpoConfig& g) {
  return g.epochs * g.minibatches == 1;
}

bool compares_within_group(const GrpoConfig& g) {
  return g.estimator != "reinforce_pp" && g.estimator != "remax";
}

void judge_group(Judging& j) {
  const GrpoConfig& g = j.config.grpo;
  if (g.group_size == 1 && compares_within_group(g)) {
    j.problem(cat(
        j.named("grpo.group_size"),
        ": advantages are relative to the group's mean, so a group of one learns nothing (and with "
        "grpo.scale_rewards = ",
        g.scale_rewards, " divides zero by zero); the nearest valid value is 2"));
  }
  if (g.estimator == "loo_scaled" && g.group_size == 2)
    j.problem(cat(j.named("grpo.group_size"),
                  ": loo_scaled divides by the deviation of the group's others, and a single other "
                  "has none; the "
                  "nearest valid value is 3"));
  if (g.estimator == "group" && g.scale_rewards == "group" && g.group_size == 2)
    j.warn(cat(j.named("grpo.group_size"),
               ": two rewards that differ are always scaled to plus and minus 0.71, however little "
               "they differ"));
  if (g.estimator != "group")
    j.unused("grpo.scale_rewards", cat("grpo.estimator is ", g.estimator));
  if (g.estimator != "reinforce_pp")
    j.unused("grpo.gamma", "only grpo.estimator reinforce_pp discounts");
  if (g.normalize_advantages != "tokens")
    j.unused("grpo.variance", "grpo.normalize_advantages is not tokens");
  if (g.normalize_each_reward && g.estimator != "group")
    j.problem(cat(j.named("grpo.normalize_each_reward"),
                  ": has a meaning for grpo.estimator = group only"));
  if (g.normalize_each_reward && j.config.reward.size() < 2)
    j.warn(cat(j.named("grpo.normalize_each_reward"),
               ": there is one reward rule; nothing is there to be balanced"));
}

void judge_kl(Judging& j) {
  const GrpoConfig& g = j.config.grpo;
  if (g.beta == 0 && g.reward_beta == 0)
    j.unused("grpo.reference", "grpo.beta and grpo.reward_beta are 0");
  if (g.beta == 0)
    j.unused("grpo.kl", "grpo.beta is 0"), j.unused("grpo.kl_times_ratio", "grpo.beta is 0");
  if (g.reward_beta == 0) j.unused("grpo.reward_kl", "grpo.reward_beta is 0");
  if (g.beta == 0 && g.reward_beta == 0)
    j.unused("grpo.kl_clamp", "grpo.beta and grpo.reward_beta are 0");
  if (g.beta != 0 && g.reward_beta != 0)
    j.warn(
        "grpo.beta, grpo.reward_beta: the KL divergence is paid for twice, in the loss and in the "
        "reward");
}

void judge_surrogate(Judging& j) {
  const GrpoConfig& g = j.config.grpo;
  const bool clips = g.policy_loss == "clip" || g.policy_loss == "clip_cov" ||
                     g.policy_loss == "cispo_band" || g.policy_loss == "gmpo" ||
                     g.policy_loss == "dppo_tv";
  if (!clips)
    j.unused("grpo.clip_low", cat("grpo.policy_loss ", g.policy_loss, " has no lower bound"));
  if (!clips && g.policy_loss != "cispo")
    j.unused("grpo.clip_high", cat("grpo.policy_loss is ", g.policy_loss));
  if (g.policy_loss == "cispo" && g.clip_high < 1)
    j.warn(cat(j.named("grpo.clip_high"),
               ": policy_loss cispo takes it as the greatest weight itself, so even a fresh token, "
               "of weight 1, is "
               "held down to it; 5 is recommended"));
  if (g.clip_low == 1 && clips)
    j.warn(cat(j.named("grpo.clip_low"), ": ratios are never clipped from below"));
  const bool fresh = trained_once(g) && !asks_policy_again(j.config);
  if (fresh && clips) {
    for (const char* key : {"grpo.clip_low", "grpo.clip_high", "grpo.delta", "grpo.dual_clip"})
      j.unused(key,
               "every round is trained on once, so all ratios are exactly 1 (grpo.epochs, "
               "grpo.minibatches)");
  }
  if (g.ratio.starts_with("sequence") && g.ratio != "sequence_sum" && g.clip_low >= 0.1 && clips &&
      !fresh)
    j.warn(cat(j.named("grpo.clip_low"),
               ": ratios of sequences stay near 1, so this never clips; 3e-4 and a clip_high of "
               "4e-4 are GSPO's"));
  if (g.policy_loss != "sapo")
    j.unused("grpo.sapo_temperature_pos", "grpo.policy_loss is not sapo");
  if (g.policy_loss != "dro") j.unused("grpo.dro_beta", "grpo.policy_loss is not dro");
}

void judge_covariance(Judging& j) {
  const GrpoConfig& g = j.config.grpo;
  const bool clips = g.policy_loss == "clip_cov", holds = g.policy_loss == "kl_cov";
  if (!clips && !holds)
    j.unused("grpo.cov_ratio", "grpo.policy_loss is neither clip_cov nor kl_cov");
  if (!clips)
    j.unused("grpo.cov_low", "grpo.policy_loss is not clip_cov"),
        j.unused("grpo.cov_high", "grpo.policy_loss is not clip_cov");
  if (!holds) j.unused("grpo.cov_kl", "grpo.policy_loss is not kl_cov");
  if (holds && trained_once(g))
    j.warn(cat(j.named("grpo.policy_loss"),
               ": every round is trained on once, so all ratios are exactly 1 and there is no "
               "distance to hold tokens by (grpo.epochs, "
               "grpo.minibatches)"));
}

void judge_entropy(Judging& j) {
  const GrpoConfig& g = j.config.grpo;
  if (g.entropy_schedule != "adaptive") {
    for (const char* key : {"grpo.entropy_target", "grpo.entropy_delta", "grpo.entropy_coef_min",
                            "grpo.entropy_coef_max"})
      j.unused(key, "grpo.entropy_schedule is fixed");
    if (g.entropy_coef < 0)
      j.warn(cat(j.named("grpo.entropy_coef"),
                 ": a negative weight rewards the policy for having no doubts"));
    return;
  }
  if (!(g.entropy_coef_min < g.entropy_coef_max) || g.entropy_coef < g.entropy_coef_min ||
      g.entropy_coef > g.entropy_coef_max)
    j.problem(
        cat(j.named("grpo.entropy_coef"),
            ": expected grpo.entropy_coef_min <= entropy_coef <= grpo.entropy_coef_max, found ",
            to_text(g.entropy_coef_min), " and ", to_text(g.entropy_coef_max)));
}

void judge_correction(Judging& j) {
  const GrpoConfig& g = j.config.grpo;
  const bool corrects = g.correction != "none" || g.filter != "none";
  const bool guessed = g.proximal != "given", asks = asks_policy_again(j.config);
  if (guessed && asks) {
    const char* key = g.recompute_old_logp ? "grpo.recompute_old_logp" : "rollout.weights";
    j.problem(cat(j.named("grpo.proximal"), ": it guesses what ", j.named(key),
                  " asks for; set one of them"));
  }
  if (guessed && trained_once(g))
    j.warn(cat(j.named("grpo.proximal"),
               ": every round is trained on once, right after it was drawn, so the guess is the "
               "rollout itself"));
  if (guessed && !corrects)
    j.warn(cat(j.named("grpo.proximal"),
               ": decoupled PPO weighs samples by its ratio to the rollout; set grpo.correction, "
               "such as token"));
  if (g.filter == "none")
    for (const char* key : {"grpo.filter_by", "grpo.filter_low", "grpo.filter_high"})
      j.unused(key, "grpo.filter is none");
  if (g.filter != "none" && g.filter_by != "k1")
    j.unused("grpo.filter_low",
             cat("grpo.filter_by ", g.filter_by, " is a distance, which has no lower bound"));
  if (corrects && !asks && !guessed)
    j.warn(
        "grpo.correction, grpo.filter: ratios start from the log-probabilities that the rollouts "
        "gave, so every weight is exactly 1; "
        "grpo.recompute_old_logp = true asks the policy for them again");
  if (!corrects && g.recompute_old_logp && !draws_in_8_bits(j.config))
    j.warn(cat(j.named("grpo.recompute_old_logp"),
               ": costs a pass over every sample, and no correction makes use of the difference"));
  if (g.correction == "sequence")
    j.warn(cat(j.named("grpo.correction"),
               ": a product over the sample grows or shrinks with its length; geometric does not"));
}

void judge_reward_shape(Judging& j) {
  const GrpoConfig& g = j.config.grpo;
  if (g.overlong_buffer >= static_cast<double>(j.config.rollout.max_new_tokens) &&
      g.overlong_buffer > 0)
    j.problem(cat(j.named("grpo.overlong_buffer"),
                  ": every answer would be punished; expected less than ",
                  j.named("rollout.max_new_tokens"), ", a fifth of it is usual"));
  if (g.overlong_buffer == 0)
    j.unused("grpo.overlong_factor", "grpo.overlong_buffer is 0"),
        j.unused("grpo.overlong_capped", "grpo.overlong_buffer is 0");
  if (g.mask_truncated &&
      (g.overlong_buffer > 0 || g.truncated_scale != 1 || g.missing_eos_penalty != 0))
    j.warn(cat(
        j.named("grpo.mask_truncated"),
        ": answers that were cut are not trained on, so a punishment reaches them only as part of "
        "their group's mean"));
}

void judge_dynamic(Judging& j) {
  const GrpoConfig& g = j.config.grpo;
  if (!g.dynamic_sampling) {
    for (const char* key : {"grpo.max_refills", "grpo.dynamic_bounds", "grpo.dynamic_metric"})
      j.unused(key, "grpo.dynamic_sampling is off");
    return;
  }
  if (g.group_size == 1)
    j.problem(cat(
        j.named("grpo.dynamic_sampling"),
        ": one sample is never different from itself, so every round would be refilled for ever; "
        "grpo.group_size of at least 2 is needed"));
  if (!g.dynamic_bounds.empty() &&
      (g.dynamic_bounds.size() != 2 || !(g.dynamic_bounds[0] < g.dynamic_bounds[1])))
    j.problem(cat(j.named("grpo.dynamic_bounds"),
                  ": expected two numbers, the lower one first, as [0, 1], or none"));
  if (j.config.train.batch_size * g.minibatches == 1)
    j.warn(cat(
        j.named("train.batch_size"),
        ": a round of one prompt is drawn again whenever its answers are all right or all wrong"));
  if (j.config.train.steps == 0)
    j.warn(
        "train.steps is 0, so steps are counted from train.epochs; dynamic sampling uses up "
        "prompts faster, and the run ends before them");
}

}  // namespace

void judge_grpo(Judging& j) {
  const GrpoConfig& g = j.config.grpo;
  if (const auto settings = grpo_settings(j.config); !settings) j.problem(settings.error().what);
  judge_group(j), judge_kl(j), judge_surrogate(j), judge_covariance(j), judge_entropy(j),
      judge_correction(j), judge_reward_shape(j), judge_dynamic(j);
  if (g.constant_length > 0 && g.aggregation != "dr_grpo") {
    j.problem(cat(j.named("grpo.constant_length"),
                  ": has a meaning for grpo.aggregation = dr_grpo only"));
  }
  if (const std::int64_t round = g.epochs * g.minibatches, left = j.config.train.steps % round;
      left != 0) {
    j.warn(cat(j.named("train.steps"), ": one batch of samples makes ", round,
               " steps (grpo.epochs x grpo.minibatches), so the last is trained on ",
               "in part; a run that is made longer later goes on with fresh samples"));
  }
  judge_rollout(j), judge_reward(j);
}

}  // namespace troupe::launch
