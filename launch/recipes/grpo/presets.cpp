// The algorithms that are settings of grpo, with the defaults of their papers, and the ways of
// other tools. A preset sets a key that a dialect sets too only where the algorithm is not itself
// without it.
#include "launch/recipes/grpo/grpo.h"

namespace troupe::launch {

std::vector<Preset> grpo_presets() {
  return {
      {"dr_grpo",
       "grpo",
       "GRPO without its two biases: no division by lengths or deviations (arXiv:2503.20783)",
       {{"grpo.aggregation", "dr_grpo"}, {"grpo.scale_rewards", "none"}}},
      {"dapo",
       "grpo",
       "clip-higher, token mean and dynamic sampling; set grpo.overlong_buffer for its overlong "
       "shaping, a fifth of the length in the "
       "paper "
       "(arXiv:2503.14476)",
       {{"grpo.aggregation", "dapo"},
        {"grpo.clip_high", "0.28"},
        {"grpo.dynamic_sampling", "true"},
        {"grpo.beta", "0"}}},
      {"gspo",
       "grpo",
       "importance ratios of whole sequences with a narrow clip (arXiv:2507.18071)",
       {{"grpo.ratio", "sequence"},
        {"grpo.aggregation", "grpo"},
        {"grpo.clip_low", "3e-4"},
        {"grpo.clip_high", "4e-4"},
        {"grpo.beta", "0"}}},
      {"cispo",
       "grpo",
       "importance weights clipped above instead of tokens dropped (arXiv:2506.13585); TRL's form, "
       "with its recommended bound",
       {{"grpo.policy_loss", "cispo"},
        {"grpo.clip_high", "5"},
        {"grpo.aggregation", "dapo"},
        {"grpo.dual_clip", "0"}}},
      {"sapo",
       "grpo",
       "a smooth gate in place of the clip (arXiv:2511.20347); TRL's temperatures",
       {{"grpo.policy_loss", "sapo"}, {"grpo.aggregation", "grpo"}, {"grpo.dual_clip", "0"}}},
      {"luspo",
       "grpo",
       "GSPO without its bias against long answers: sequences weigh as many tokens as they have; "
       "the paper's clip (arXiv:2602.05261)",
       {{"grpo.ratio", "sequence"},
        {"grpo.aggregation", "seq-mean-token-sum"},
        {"grpo.clip_low", "2e-3"},
        {"grpo.clip_high", "2.5e-3"}}},
      {"vespo",
       "grpo",
       "whole answers weighed by a smooth function of their ratio (arXiv:2602.10693); TRL's "
       "exponents",
       {{"grpo.policy_loss", "vespo"}, {"grpo.aggregation", "dapo"}, {"grpo.dual_clip", "0"}}},
      {"rloo",
       "grpo",
       "REINFORCE against the mean of the group's others, KL in the reward (arXiv:2402.14740); "
       "TRL's defaults",
       {{"grpo.estimator", "rloo"},
        {"grpo.ratio", "sequence_sum"},
        {"grpo.aggregation", "grpo"},
        {"grpo.group_size", "2"},
        {"grpo.reward_beta", "0.05"},
        {"grpo.reward_kl", "k1"}}},
      {"reinforce_pp",
       "grpo",
       "REINFORCE++: one sample a prompt, rewards to go with KL at each token, whitened over the "
       "round (arXiv:2501.03262); OpenRLHF's "
       "coefficient",
       {{"grpo.estimator", "reinforce_pp"},
        {"grpo.group_size", "1"},
        {"grpo.normalize_advantages", "tokens"},
        {"grpo.aggregation", "bnpo"},
        {"grpo.reward_beta", "0.01"},
        {"grpo.reward_kl", "k1"}}},
      {"reinforce_pp_baseline",
       "grpo",
       "REINFORCE++ with the group's mean as baseline, whitened over the round (arXiv:2501.03262)",
       {{"grpo.estimator", "group"},
        {"grpo.scale_rewards", "none"},
        {"grpo.normalize_advantages", "tokens"},
        {"grpo.aggregation", "bnpo"}}},
      {"remax",
       "grpo",
       "REINFORCE against the greedy answer's reward: one greedy sample more a prompt "
       "(arXiv:2310.10505)",
       {{"grpo.estimator", "remax"}, {"grpo.group_size", "1"}, {"grpo.aggregation", "bnpo"}}},
  };
}

std::vector<Preset> grpo_dialects() {
  return {
      {"trl",
       "grpo",
       "GRPOTrainer of TRL 1.16",
       {{"grpo.aggregation", "dapo"},
        {"grpo.kl_times_ratio", "true"},
        {"grpo.advantage_eps", "1e-4"},
        {"grpo.count_empty_sequences", "true"}}},
      {"verl",
       "grpo",
       "verl's defaults",
       {{"grpo.aggregation", "bnpo"},
        {"grpo.kl_times_ratio", "false"},
        {"grpo.kl_clamp", "verl"},
        {"grpo.dual_clip", "3"},
        {"grpo.log_ratio_limit", "20"},
        {"grpo.advantage_eps", "1e-6"},
        {"grpo.count_empty_sequences", "false"},
        {"grpo.overlong_capped", "false"}}},
      {"openrlhf",
       "grpo",
       "OpenRLHF's defaults",
       {{"grpo.aggregation", "bnpo"},
        {"grpo.kl_times_ratio", "false"},
        {"grpo.kl_clamp", "openrlhf"},
        {"grpo.advantage_eps", "1e-9"},
        {"grpo.variance", "biased"},
        {"grpo.count_empty_sequences", "false"},
        {"grpo.reward_clip", "10"}}},
      {"mindspeed",
       "grpo",
       "MindSpeed-RL's defaults",
       {{"grpo.aggregation", "bnpo"},
        {"grpo.kl_times_ratio", "false"},
        {"grpo.kl_clamp", "verl"},
        {"grpo.advantage_eps", "1e-6"},
        {"grpo.count_empty_sequences", "false"}}},
  };
}

}  // namespace troupe::launch
