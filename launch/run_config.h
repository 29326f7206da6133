// RunConfig: everything that a run can be told, as nested plain structs whose initial values are the defaults.
// launch/fields.cpp gives every member its key, range and doc line; launch/resolve.h fills it from a file and --set.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/base/json.h"

namespace troupe::launch {

struct DataConfig {
  std::vector<std::string> path;               ///< files, read one after the other
  std::string format = "auto";                 ///< how a row is laid out: the names of engine/data/sample.h
  std::map<std::string, std::string> columns;  ///< our name -> the file's name ("prompt": "question")
  bool shuffle = true;
  std::string chat = "auto";      ///< auto, always, never: plain texts through the chat template
  std::int64_t max_bad_rows = 0;  ///< malformed rows that are reported and left out; one more stops the run
};

struct TrainConfig {
  std::int64_t steps = 0;  ///< optimizer steps; 0: as many as `epochs` make
  std::int64_t epochs = 1;
  std::int64_t batch_size = 8;             ///< rows, pairs or prompts an optimizer step
  std::int64_t micro_batch_tokens = 8192;  ///< tokens in one forward/backward; never changes a result
  std::int64_t max_length = 0;             ///< tokens of a sequence; 0: the model's
  double learning_rate = 1e-5;
  std::string schedule = "linear";  ///< constant, linear, cosine, inverse_sqrt, wsd
  std::int64_t warmup_steps = 0;
  std::int64_t decay_steps = 0;  ///< wsd: length of the final decay; 0: a tenth of the steps
  double min_lr_ratio = 0;       ///< the schedule ends at learning_rate * min_lr_ratio
  std::vector<double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double max_grad_norm = 1;   ///< 0: no clipping
  std::string dtype = "f32";  ///< f32, bf16
  std::int64_t seed = 0;
  std::int64_t threads = 0;       ///< 0: as many as the process may use
  std::int64_t save_every = 100;  ///< steps between checkpoints; 0: only the last
  std::int64_t keep_last = 2;     ///< checkpoints kept; 0: all
  std::int64_t log_every = 1;     ///< steps between progress lines when stderr is not a terminal
  std::int64_t patience = 3600;   ///< seconds that the answer to one message may take
};

/// How the ranks of the policy's group share the model (engine/parallel/grid.h).
struct ParallelConfig {
  std::int64_t tp = 1;  ///< parts of every matrix
  std::int64_t dp = 1;  ///< replicas that share each batch
};

struct SftConfig {
  std::string loss = "nll";  ///< the names of algorithms::SftLoss::Kind
  bool mask_prompt = true;   ///< train on the assistant's tokens only
};

struct DpoConfig {
  double beta = 0.1;
  std::string loss = "sigmoid";  ///< the names of algorithms::DpoLoss::Kind
  double label_smoothing = 0;
  double discopop_tau = 0.05;
  std::string reference;              ///< a model directory; empty: the starting weights
  bool precompute_reference = false;  ///< score the data once before the first step and forget the reference model
};

struct GrpoConfig {
  std::int64_t group_size = 8;  ///< samples a prompt
  double beta = 0;              ///< KL coefficient; 0: no reference model
  std::string kl = "k3";        ///< k1, k2, k3
  bool kl_times_ratio = true;   ///< multiply the KL estimate by the importance ratio
  std::string reference;        ///< a model directory; empty: the starting weights
  double clip_low = 0.2, clip_high = 0.2;
  double delta = 0;             ///< upper bound of the unclipped ratio; 0: none
  bool sequence_ratio = false;  ///< one importance ratio a sequence (GSPO)
  double entropy_coef = 0;
  std::string aggregation = "dapo";     ///< the names of algorithms::GrpoLoss::Aggregation
  double constant_length = 0;           ///< dr_grpo: the divisor; 0: rollout.max_new_tokens
  std::string scale_rewards = "group";  ///< group, batch, none
  std::int64_t epochs = 1;              ///< passes over each batch of samples
  std::int64_t minibatches = 1;         ///< optimizer steps a pass, of train.batch_size prompts each
  bool mask_truncated = false;          ///< do not train on samples that hit max_new_tokens
};

struct RolloutConfig {
  double temperature = 1;
  std::int64_t top_k = 0;  ///< 0: all
  double top_p = 1, min_p = 0;
  double repetition_penalty = 1, presence_penalty = 0;
  std::int64_t max_new_tokens = 256;
  std::vector<std::string> stop;
  std::int64_t max_sequences = 64;  ///< sequences decoded at the same time
  std::int64_t cache_tokens = 0;    ///< room of the KV cache; 0: max_sequences of full length
};

/// One rule of a weighted sum (actors/roles/rules/rules.h has their names and options).
struct RewardRule {
  std::string rule;
  double weight = 1;
  std::string label;  ///< the part's name in metrics; empty: the rule's
  Json options;       ///< the rule's own settings, an object, or null
  bool operator==(const RewardRule&) const = default;
};

struct RunConfig {
  std::string algorithm;        ///< sft, dpo, grpo
  std::string model;            ///< a Hugging Face directory
  std::string output;           ///< the run's directory
  std::string resume = "auto";  ///< auto, never, or a checkpoint directory
  std::string chat_template;    ///< a file; empty: the model's own
  DataConfig data;
  TrainConfig train;
  ParallelConfig parallel;
  SftConfig sft;
  DpoConfig dpo;
  GrpoConfig grpo;
  RolloutConfig rollout;
  std::vector<RewardRule> reward;
};

/// True when the run compares with a reference model.
inline bool needs_reference(const RunConfig& config) {
  return config.algorithm == "dpo" || (config.algorithm == "grpo" && config.grpo.beta != 0);
}

/// Where each value came from, by key: "default", "run.yaml:7", "--set", "--algorithm".
using Origins = std::map<std::string, std::string>;

}  // namespace troupe::launch
