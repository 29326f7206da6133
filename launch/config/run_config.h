// RunConfig: everything that a run can be told, as nested plain structs whose initial values are
// the defaults. launch/config/fields.cpp gives every member its key, range and doc line;
// launch/config/resolve.h fills it from a file and --set.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launch/profile/config.h"
#include "launch/recipes/eval_config.h"
#include "launch/recipes/grpo/config.h"
#include "launch/recipes/lora_config.h"
#include "launch/recipes/ppo/config.h"
#include "launch/recipes/preference/dpo_config.h"
#include "launch/recipes/preference/preference_config.h"
#include "launch/recipes/rewards/orm_config.h"
#include "launch/recipes/rewards/prm_config.h"
#include "launch/recipes/sampling/sampling_config.h"
#include "launch/recipes/sft_config.h"

namespace troupe::launch {

/// One of several sources whose rows are drawn by their weights.
struct MixSource {
  std::vector<std::string> path;
  double weight = 1;
  std::int64_t epochs = 0;  ///< passes after which it gives no more; 0: no limit
  std::string format = "auto";
  std::map<std::string, std::string> columns;
};

struct DataConfig {
  std::vector<std::string> path;  ///< files, folders and patterns, read one after the other
  std::vector<MixSource> mix;     ///< instead of path
  std::string format =
      "auto";  ///< how a row is laid out: the names of engine/data/layouts/sample.h
  std::map<std::string, std::string>
      columns;  ///< our name -> the file's name ("prompt": "question")
  std::map<std::string, std::string>
      tags;  ///< how conversations call their members and roles (engine/data/layouts/columns.h)
  std::string sample_by = "line";  ///< a row of a text file: line, paragraph, document, separator
  std::string separator = "<|endoftext|>";
  std::vector<std::string> column_names;  ///< of csv and tsv files without a header
  bool stream = false;                    ///< read as the run goes, instead of everything before it
  std::int64_t shuffle_buffer = 10000;    ///< examples of a stream that are in memory at a time
  bool shuffle = true;
  std::string chat = "auto";  ///< auto, always, never: plain texts through the chat template
  std::int64_t max_bad_rows =
      0;  ///< malformed rows that are reported and left out; one more stops the run
};

struct TrainConfig {
  std::int64_t steps = 0;  ///< optimizer steps; 0: as many as `epochs` make
  std::int64_t epochs = 1;
  std::int64_t batch_size = 8;  ///< rows, pairs or prompts an optimizer step
  std::int64_t micro_batch_tokens =
      8192;  ///< tokens in one forward/backward; never changes a result
  /// full, attention, activation, norm: what is computed again instead of kept. These two cost
  /// about a hundredth of a step's time.
  std::vector<std::string> recompute{"activation", "norm"};
  bool share_prefixes = false;  ///< rows of sequences that begin alike are computed once
  std::int64_t max_length = 0;  ///< tokens of a sequence; 0: the model's
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
  bool stochastic_rounding = false;
  std::int64_t seed = 0;
  std::int64_t threads = 0;       ///< 0: as many as the process may use
  bool pin_threads = false;       ///< each on a processor of its own
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

struct RunConfig {
  std::string algorithm;        ///< one of algorithm_names() (launch/recipes/recipes.h)
  std::string dialect;          ///< trl, verl, openrlhf, mindspeed: whose defaults; empty: ours
  std::string model;            ///< a Hugging Face directory
  std::string output;           ///< the run's directory
  std::string resume = "auto";  ///< auto, never, or a checkpoint directory
  std::string chat_template;    ///< a file; empty: the model's own
  DataConfig data;
  TrainConfig train;
  ParallelConfig parallel;
  ProfileConfig profile;
  LoraSection lora;
  SftConfig sft;
  DpoConfig dpo;
  SimpoConfig simpo;
  CpoConfig cpo;
  OrpoConfig orpo;
  KtoConfig kto;
  EvalConfig eval;
  OrmConfig orm;
  PrmConfig prm;
  PpoConfig ppo;
  CriticConfig critic;
  GrpoConfig grpo;
  RolloutConfig rollout;
  std::vector<RewardRule> reward;
};

/// Where each value came from, by key: "default", "algorithm dapo", "dialect verl"
/// (launch/recipes), "run.yaml:7", "--set", "--algorithm".
using Origins = std::map<std::string, std::string>;

}  // namespace troupe::launch
