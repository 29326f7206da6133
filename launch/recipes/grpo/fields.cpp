// The keys of the section `grpo`.
#include "launch/config/fields.h"
#include "launch/recipes/grpo/grpo.h"

namespace troupe::launch {
namespace {

constexpr Field table[] = {
    {"grpo.group_size",
     [](RunConfig& c) { return Slot(&c.grpo.group_size); },
     "samples a prompt",
     "",
     {1, 4096}},
    {"grpo.estimator", [](RunConfig& c) { return Slot(&c.grpo.estimator); },
     "how advantages come from rewards: distance to the group's mean, to the mean of the group's "
     "others (rloo; loo_scaled: divided by "
     "their deviation), rewards to go of each token (reinforce_pp), distance to the greedy answer "
     "(remax), the best one's lead "
     "(pass_at_k), distance to the group's length-weighted mean (opo), gpg, max_rl",
     "group|rloo|loo_scaled|reinforce_pp|remax|pass_at_k|opo|gpg|max_rl", any},
    {"grpo.scale_rewards", [](RunConfig& c) { return Slot(&c.grpo.scale_rewards); },
     "estimator group: divide advantages by the standard deviation of the group, of the batch, or "
     "not at all",
     "group|batch|none", any},
    {"grpo.advantage_eps", [](RunConfig& c) { return Slot(&c.grpo.advantage_eps); },
     "added to the deviation that is divided by (TRL 1e-4, verl 1e-6, OpenRLHF 1e-9)", "",
     at_least_0},
    {"grpo.normalize_advantages", [](RunConfig& c) { return Slot(&c.grpo.normalize_advantages); },
     "bring a round's advantages to mean 0 and deviation 1 at last: over samples, or over tokens "
     "(REINFORCE++)",
     "none|samples|tokens", any},
    {"grpo.variance", [](RunConfig& c) { return Slot(&c.grpo.variance); },
     "normalize_advantages tokens: the variance divides by n - 1, or by n (OpenRLHF)",
     "bessel|biased", any},
    {"grpo.normalize_each_reward", [](RunConfig& c) { return Slot(&c.grpo.normalize_each_reward); },
     "several reward rules: scale each within its group before they are added up (GDPO)", "", any},
    {"grpo.gamma", [](RunConfig& c) { return Slot(&c.grpo.gamma); },
     "estimator reinforce_pp: discount of what comes a token later", "", fraction},
    {"grpo.reward_beta", [](RunConfig& c) { return Slot(&c.grpo.reward_beta); },
     "KL from the reference that is taken from the reward: its coefficient; 0: none", "",
     at_least_0},
    {"grpo.reward_kl", [](RunConfig& c) { return Slot(&c.grpo.reward_kl); }, "estimator of that KL",
     "k1|k2|k3|abs|k1+|k3+", any},
    {"grpo.beta", [](RunConfig& c) { return Slot(&c.grpo.beta); },
     "KL coefficient in the loss; 0: no KL term", "", at_least_0},
    {"grpo.kl", [](RunConfig& c) { return Slot(&c.grpo.kl); },
     "estimator of the KL divergence from the reference; with a plus: its value with the gradient "
     "of k2",
     "k1|k2|k3|abs|k1+|k3+", any},
    {"grpo.kl_clamp", [](RunConfig& c) { return Slot(&c.grpo.kl_clamp); },
     "hold a token's KL estimate within bounds: none (TRL), k3 alone (verl, MindSpeed), every one "
     "(OpenRLHF)",
     "none|verl|openrlhf", any},
    {"grpo.kl_times_ratio", [](RunConfig& c) { return Slot(&c.grpo.kl_times_ratio); },
     "multiply the KL estimate by the importance ratio", "", any},
    {"grpo.reference", [](RunConfig& c) { return Slot(&c.grpo.reference); },
     "reference model's directory; empty: the starting weights", "", any},
    {"grpo.policy_loss", [](RunConfig& c) { return Slot(&c.grpo.policy_loss); },
     "what is minimised: PPO's clip, CISPO with an upper bound (TRL) or a band (verl), SAPO, "
     "VESPO, GMPO, DRO, DPPO's mask by total "
     "variation, Clip-Cov, KL-Cov",
     "clip|cispo|cispo_band|sapo|vespo|gmpo|dro|dppo_tv|clip_cov|kl_cov", any},
    {"grpo.ratio", [](RunConfig& c) { return Slot(&c.grpo.ratio); },
     "importance ratio of each token, of the sequence (its geometric mean; GSPO), the same with "
     "the gradient of single tokens "
     "(GSPO-token), or of the whole answer (RLOO)",
     "token|sequence|sequence_token|sequence_sum", any},
    {"grpo.clip_low", [](RunConfig& c) { return Slot(&c.grpo.clip_low); },
     "the importance ratio is clipped below 1 - clip_low; policy_loss dppo_tv: a bad token is left "
     "out whose probability fell by more",
     "", fraction},
    {"grpo.clip_high", [](RunConfig& c) { return Slot(&c.grpo.clip_high); },
     "the importance ratio is clipped above 1 + clip_high; policy_loss cispo: above clip_high "
     "itself; dppo_tv: a good token is left out "
     "whose probability rose by more",
     "", at_least_0},
    {"grpo.delta", [](RunConfig& c) { return Slot(&c.grpo.delta); },
     "upper bound of the unclipped importance ratio; 0: none", "", at_least_0},
    {"grpo.dual_clip", [](RunConfig& c) { return Slot(&c.grpo.dual_clip); },
     "where the advantage is negative the loss is at most so many times it (verl: 3); 0: no bound",
     "", at_least_0},
    {"grpo.log_ratio_limit", [](RunConfig& c) { return Slot(&c.grpo.log_ratio_limit); },
     "hold the log of the importance ratio within it (verl: 20); 0: not", "", at_least_0},
    {"grpo.sapo_temperature_pos", [](RunConfig& c) { return Slot(&c.grpo.sapo_temperature_pos); },
     "SAPO: steepness where the advantage is positive", "", above_0},
    {"grpo.sapo_temperature_neg", [](RunConfig& c) { return Slot(&c.grpo.sapo_temperature_neg); },
     "SAPO: steepness elsewhere", "", above_0},
    {"grpo.vespo_k_pos", [](RunConfig& c) { return Slot(&c.grpo.vespo_k_pos); },
     "VESPO: power of the ratio where the advantage is not negative", "", at_least_0},
    {"grpo.vespo_lambda_pos", [](RunConfig& c) { return Slot(&c.grpo.vespo_lambda_pos); },
     "VESPO: decay where the advantage is not negative", "", above_0},
    {"grpo.vespo_k_neg", [](RunConfig& c) { return Slot(&c.grpo.vespo_k_neg); },
     "VESPO: power of the ratio elsewhere", "", at_least_0},
    {"grpo.vespo_lambda_neg", [](RunConfig& c) { return Slot(&c.grpo.vespo_lambda_neg); },
     "VESPO: decay elsewhere", "", above_0},
    {"grpo.dro_beta", [](RunConfig& c) { return Slot(&c.grpo.dro_beta); },
     "DRO: weight of the squared log ratio", "", at_least_0},
    {"grpo.cov_ratio",
     [](RunConfig& c) { return Slot(&c.grpo.cov_ratio); },
     "clip_cov, kl_cov: the share of an update's tokens that is left out, or held",
     "",
     {0, 1, true}},
    {"grpo.cov_low", [](RunConfig& c) { return Slot(&c.grpo.cov_low); },
     "clip_cov: tokens are drawn from those whose covariance of advantage and log-probability is "
     "above",
     "", any},
    {"grpo.cov_high", [](RunConfig& c) { return Slot(&c.grpo.cov_high); }, "clip_cov: and below",
     "", any},
    {"grpo.cov_kl", [](RunConfig& c) { return Slot(&c.grpo.cov_kl); },
     "kl_cov: weight of |log ratio| at the tokens of the greatest covariance", "", at_least_0},
    {"grpo.entropy_coef",
     [](RunConfig& c) { return Slot(&c.grpo.entropy_coef); },
     "weight of the entropy bonus",
     "",
     {-10, 10}},
    {"grpo.entropy_schedule", [](RunConfig& c) { return Slot(&c.grpo.entropy_schedule); },
     "the weight stays, or rises after each update whose entropy was below grpo.entropy_target and "
     "falls after the others, which are "
     "followed by one without a bonus (Skywork-OR1)",
     "fixed|adaptive", any},
    {"grpo.entropy_target", [](RunConfig& c) { return Slot(&c.grpo.entropy_target); },
     "adaptive: nats a token", "", at_least_0},
    {"grpo.entropy_delta", [](RunConfig& c) { return Slot(&c.grpo.entropy_delta); },
     "adaptive: by how much the weight changes", "", above_0},
    {"grpo.entropy_coef_min",
     [](RunConfig& c) { return Slot(&c.grpo.entropy_coef_min); },
     "adaptive: the least weight",
     "",
     {-10, 10}},
    {"grpo.entropy_coef_max",
     [](RunConfig& c) { return Slot(&c.grpo.entropy_coef_max); },
     "adaptive: the greatest",
     "",
     {-10, 10}},
    {"grpo.top_entropy_quantile",
     [](RunConfig& c) { return Slot(&c.grpo.top_entropy_quantile); },
     "learn from this share of the tokens, those with the most entropy (0.2 is recommended); 1: "
     "from all",
     "",
     {0, 1, true}},
    {"grpo.off_policy_mask", [](RunConfig& c) { return Slot(&c.grpo.off_policy_mask); },
     "leave out samples with a negative advantage that became less likely by more than so many "
     "nats a token; 0: none",
     "", at_least_0},
    {"grpo.recompute_old_logp", [](RunConfig& c) { return Slot(&c.grpo.recompute_old_logp); },
     "ask the policy again for the log-probabilities that ratios start from; those of the rollouts "
     "then serve the correction",
     "", any},
    {"grpo.proximal", [](RunConfig& c) { return Slot(&c.grpo.proximal); },
     "decoupled PPO: the policy that ratios start from: the log-probabilities given (those of the "
     "rollouts, or the policy's own where they "
     "are asked for again), or a guess between rollout and policy by the versions of their weights "
     "(AReaL)",
     "given|loglinear|linear", any},
    {"grpo.correction", [](RunConfig& c) { return Slot(&c.grpo.correction); },
     "weigh by the ratio of the policy to the rollout that sampled: of tokens, of whole samples "
     "(their product), or of their geometric "
     "mean",
     "none|token|sequence|geometric", any},
    {"grpo.correction_outside", [](RunConfig& c) { return Slot(&c.grpo.correction_outside); },
     "a weight out of its bounds is cut to the bound, set to 0, or kept", "truncate|mask|keep",
     any},
    {"grpo.correction_low", [](RunConfig& c) { return Slot(&c.grpo.correction_low); },
     "lower bound of the weight", "", at_least_0},
    {"grpo.correction_high", [](RunConfig& c) { return Slot(&c.grpo.correction_high); },
     "upper bound of the weight; 0: none", "", at_least_0},
    {"grpo.filter", [](RunConfig& c) { return Slot(&c.grpo.filter); },
     "leave out samples whose ratio to the rollout is out of bounds: its product over the sample, "
     "or its geometric mean; of a distance its "
     "sum, mean or greatest over the sample, or each token by itself",
     "none|token|sequence|geometric|greatest", any},
    {"grpo.filter_by", [](RunConfig& c) { return Slot(&c.grpo.filter_by); },
     "what is looked at: the ratio (k1), or a token's distance: half the squared log ratio (k2), "
     "ratio - 1 - log ratio (k3)",
     "k1|k2|k3", any},
    {"grpo.filter_low", [](RunConfig& c) { return Slot(&c.grpo.filter_low); },
     "lower bound of that ratio", "", at_least_0},
    {"grpo.filter_high", [](RunConfig& c) { return Slot(&c.grpo.filter_high); },
     "upper bound of that ratio or distance", "", above_0},
    {"grpo.aggregation", [](RunConfig& c) { return Slot(&c.grpo.aggregation); },
     "mean over: grpo: sequences of their token means; bnpo: tokens of the update; dapo: tokens of "
     "all samples; dr_grpo: sequences, over a "
     "constant length; seq-mean-token-sum: sequences of their token sums; token-sum: nothing, a "
     "sum",
     "grpo|bnpo|dapo|dr_grpo|seq-mean-token-sum|token-sum", any},
    {"grpo.constant_length", [](RunConfig& c) { return Slot(&c.grpo.constant_length); },
     "dr_grpo: the length divided by; 0: rollout.max_new_tokens", "", at_least_0},
    {"grpo.count_empty_sequences", [](RunConfig& c) { return Slot(&c.grpo.count_empty_sequences); },
     "means over sequences count those without a trained token (TRL), or not (verl, OpenRLHF)", "",
     any},
    {"grpo.overlong_buffer", [](RunConfig& c) { return Slot(&c.grpo.overlong_buffer); },
     "punish answers that come so near to rollout.max_new_tokens, more and more (DAPO); 0: none",
     "", at_least_0},
    {"grpo.overlong_factor", [](RunConfig& c) { return Slot(&c.grpo.overlong_factor); },
     "the punishment of an answer of the full length", "", at_least_0},
    {"grpo.overlong_capped", [](RunConfig& c) { return Slot(&c.grpo.overlong_capped); },
     "never punish by more than that (OpenRLHF, MindSpeed)", "", any},
    {"grpo.truncated_scale",
     [](RunConfig& c) { return Slot(&c.grpo.truncated_scale); },
     "the reward of a sample that was cut is multiplied by it; negative: replaced by it",
     "",
     {-100, 1}},
    {"grpo.reward_scale", [](RunConfig& c) { return Slot(&c.grpo.reward_scale); },
     "rewards are multiplied by it", "", any},
    {"grpo.reward_clip", [](RunConfig& c) { return Slot(&c.grpo.reward_clip); },
     "then held within plus and minus it (OpenRLHF: 10); 0: not", "", at_least_0},
    {"grpo.missing_eos_penalty", [](RunConfig& c) { return Slot(&c.grpo.missing_eos_penalty); },
     "taken from the reward of a sample that was cut", "", at_least_0},
    {"grpo.dynamic_sampling", [](RunConfig& c) { return Slot(&c.grpo.dynamic_sampling); },
     "draw further prompts in place of groups with equal rewards (DAPO)", "", any},
    {"grpo.max_refills", [](RunConfig& c) { return Slot(&c.grpo.max_refills); },
     "dynamic sampling: batches of prompts drawn beside a round's first, at most; 0: as many as it "
     "takes",
     "", at_least_0},
    {"grpo.dynamic_bounds", [](RunConfig& c) { return Slot(&c.grpo.dynamic_bounds); },
     "dynamic sampling: a group's mean lies above the first and below the second (OpenRLHF: 0 and "
     "1); empty: anywhere",
     "", any},
    {"grpo.dynamic_metric", [](RunConfig& c) { return Slot(&c.grpo.dynamic_metric); },
     "dynamic sampling: the label of the reward rule that is looked at; empty: the reward", "",
     any},
    {"grpo.epochs",
     [](RunConfig& c) { return Slot(&c.grpo.epochs); },
     "passes over each batch of samples",
     "",
     {1, 1000}},
    {"grpo.minibatches",
     [](RunConfig& c) { return Slot(&c.grpo.minibatches); },
     "optimizer steps a pass, each of train.batch_size prompts",
     "",
     {1, 1 << 20}},
    {"grpo.mask_truncated", [](RunConfig& c) { return Slot(&c.grpo.mask_truncated); },
     "do not train on samples that ran into rollout.max_new_tokens", "", any},
};

}  // namespace

std::span<const Field> grpo_fields() {
  return table;
}

}  // namespace troupe::launch
