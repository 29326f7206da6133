// The section `grpo` of a run file; grpo_fields.cpp says what each key means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::launch {

struct GrpoConfig {
  std::int64_t group_size = 8;
  std::string estimator = "group";
  std::string scale_rewards = "group";
  double advantage_eps = 1e-4;
  std::string normalize_advantages = "none";
  std::string variance = "bessel";
  bool normalize_each_reward = false;
  double gamma = 1;
  double reward_beta = 0;
  std::string reward_kl = "k1";
  double beta = 0;
  std::string kl = "k3";
  std::string kl_clamp = "none";
  bool kl_times_ratio = true;
  std::string reference;
  std::string policy_loss = "clip";
  std::string ratio = "token";
  double clip_low = 0.2;
  double clip_high = 0.2;
  double delta = 0;
  double dual_clip = 0;
  double log_ratio_limit = 0;
  double sapo_temperature_pos = 1;
  double sapo_temperature_neg = 1.05;
  double vespo_k_pos = 2;
  double vespo_lambda_pos = 3;
  double vespo_k_neg = 3;
  double vespo_lambda_neg = 2;
  double dro_beta = 0.1;
  double cov_ratio = 2e-4;
  double cov_low = 1;
  double cov_high = 5;
  double cov_kl = 1;
  double entropy_coef = 0;
  std::string entropy_schedule = "fixed";
  double entropy_target = 0.2;
  double entropy_delta = 0.005;
  double entropy_coef_min = 0;
  double entropy_coef_max = 1;
  double top_entropy_quantile = 1;
  double off_policy_mask = 0;
  bool recompute_old_logp = false;
  std::string proximal = "given";
  std::string correction = "none";
  std::string correction_outside = "truncate";
  double correction_low = 0;
  double correction_high = 3;
  std::string filter = "none";
  std::string filter_by = "k1";
  double filter_low = 0.5;
  double filter_high = 5;
  std::string aggregation = "dapo";
  double constant_length = 0;
  bool count_empty_sequences = true;
  double overlong_buffer = 0;
  double overlong_factor = 1;
  bool overlong_capped = true;
  double truncated_scale = 1;
  double reward_scale = 1;
  double reward_clip = 0;
  double missing_eos_penalty = 0;
  bool dynamic_sampling = false;
  std::int64_t max_refills = 10;
  std::vector<double> dynamic_bounds;
  std::string dynamic_metric;
  std::int64_t epochs = 1;
  std::int64_t minibatches = 1;
  bool mask_truncated = false;
};

}  // namespace troupe::launch
