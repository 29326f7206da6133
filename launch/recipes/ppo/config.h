// The sections `ppo` and `critic` of a run file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::launch {

/// Defaults are TRL's (PPOTrainer). Words are those of algorithms/ppo.h and algorithms/losses.
struct PpoConfig {
  std::int64_t epochs = 4, minibatches = 1;
  std::int64_t samples = 1;  ///< a prompt
  double gamma = 1, lambda = 0.95;
  std::string untrained = "carry", truncated = "zero";
  bool whiten_advantages = true, whiten_rewards = false;
  std::string variance = "bessel";
  double clip_low = 0.2, clip_high = 0.2, dual_clip = 0, log_ratio_limit = 0;
  std::string aggregation = "bnpo";
  double entropy_coef = 0;
  double kl_coef = 0.05;
  std::string kl_place = "reward", kl = "k1", kl_clamp = "none", kl_schedule = "fixed";
  double kl_target = 6, kl_horizon = 10000;
  std::string reference;  ///< a model directory; empty: the starting weights
  std::string score_place = "last";
  double score_scale = 1, score_clip = 0, missing_eos_penalty = 0;
  std::string credit = "sum";
  double credit_temperature = 0.1, step_baseline = 0;
  bool mask_truncated = false;
};

struct CriticConfig {
  std::string model;  ///< a model directory: a critic, an outcome reward model, or a language
                      ///< model; empty: the starting weights
  double value_clip = 0.2, huber = 0, loss_coef = 1;
  std::int64_t warmup_rounds = 0;  ///< rounds in which the critic alone is trained
  double learning_rate = 1e-5;
  std::string schedule = "constant";
  std::int64_t warmup_steps = 0;
  double min_lr_ratio = 0;
  std::vector<double> betas{0.9, 0.999};
  double eps = 1e-8, weight_decay = 0, max_grad_norm = 1;
};

}  // namespace troupe::launch
