// The section `grpo` of a run file.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::launch {

struct GrpoConfig {
  std::int64_t group_size = 8;  ///< samples a prompt
  double beta = 0;              ///< KL coefficient; 0: no reference model
  std::string kl = "k3";        ///< k1, k2, k3
  bool kl_times_ratio = true;   ///< multiply the KL estimate by the importance ratio
  std::string reference;        ///< a model directory; empty: the starting weights
  double clip_low = 0.2, clip_high = 0.2;
  double delta = 0;             ///< upper bound of the unclipped ratio; 0: none
  std::string ratio = "token";  ///< the names of algorithms::RatioLevel
  double entropy_coef = 0;
  std::string aggregation = "dapo";     ///< the names of algorithms::GrpoLoss::Aggregation
  double constant_length = 0;           ///< dr_grpo: the divisor; 0: rollout.max_new_tokens
  std::string scale_rewards = "group";  ///< group, batch, none
  std::int64_t epochs = 1;              ///< passes over each batch of samples
  std::int64_t minibatches = 1;         ///< optimizer steps a pass, of train.batch_size prompts each
  bool mask_truncated = false;          ///< do not train on samples that hit max_new_tokens
};

}  // namespace troupe::launch
