// The sections `train` and `critic` of a run file.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/batch_rampup.h"
#include "algorithms/losses/value_loss.h"
#include "engine/base/fields.h"
#include "engine/base/ranges.h"
#include "engine/nn/forward_context.h"
#include "engine/ops/types.h"
#include "engine/optim/schedule.h"
#include "engine/train/loss_scale.h"

namespace troupe::launch::config {

/// AdamW and its learning-rate schedule, part of `train` and `critic`.
struct OptimizerConfig {
  double learning_rate = 1e-5;
  engine::optim::ScheduleKind schedule = engine::optim::ScheduleKind::linear;
  std::int64_t warmup_steps = 0;
  double warmup_ratio = 0;
  double warmup_start_ratio = -1;
  std::int64_t schedule_steps = 0;
  std::int64_t decay_steps = 0;
  engine::optim::DecayStyle decay_style = engine::optim::DecayStyle::cosine;
  double min_lr_ratio = 0;
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double max_grad_norm = 1;

  static void each_field(auto& self, auto&& field) {
    field("learning_rate", self.learning_rate, Range{0, 10}, "peak learning rate");
    field("schedule", self.schedule, "learning-rate schedule after the warmup");
    field("warmup_steps", self.warmup_steps, count_from_0, "steps of linear warmup");
    field("warmup_ratio", self.warmup_ratio, from_0_to_1,
          "length of the linear warmup as a fraction of the run's steps, instead of warmup_steps");
    field("warmup_start_ratio", self.warmup_start_ratio, Range{-1, 1},
          "learning rate of the first step of the warmup as a fraction of the peak; below 0: "
          "min_lr_ratio with wsd, as in transformers, otherwise 0");
    field("schedule_steps", self.schedule_steps, count_from_0,
          "steps until the learning rate reaches its minimum and stays there; 0: those of the run");
    field("decay_steps", self.decay_steps, count_from_0,
          "wsd: steps of the final decay; 0: a tenth of the run");
    field("decay_style", self.decay_style, "wsd: shape of the final decay");
    field("min_lr_ratio", self.min_lr_ratio, from_0_to_1,
          "final learning rate as a fraction of the peak");
    field("betas", self.betas, from_0_below_1, "AdamW betas");
    field("eps", self.eps, above_0, "AdamW epsilon");
    field("weight_decay", self.weight_decay, at_least_0,
          "decoupled weight decay of matrices; vectors are never decayed");
    field("max_grad_norm", self.max_grad_norm, at_least_0,
          "clip the global gradient norm to this; 0: no clipping");
  }
  /// Steps of warmup in a run of `steps`, rounded up as in transformers.
  std::int64_t warmup_of(std::int64_t steps) const {
    return warmup_ratio > 0
               ? static_cast<std::int64_t>(std::ceil(warmup_ratio * static_cast<double>(steps)))
               : warmup_steps;
  }
  engine::optim::ScheduleOptions schedule_options(std::int64_t steps) const {
    const bool lifted = schedule == engine::optim::ScheduleKind::wsd && warmup_start_ratio < 0;
    return {.total_steps = schedule_steps > 0 ? schedule_steps : steps,
            .warmup_steps = warmup_of(steps),
            .warmup_start = lifted ? min_lr_ratio : std::max(0.0, warmup_start_ratio),
            .min_ratio = min_lr_ratio,
            .decay_steps = decay_steps,
            .decay_style = decay_style};
  }
};

/// Activations that the backward pass recomputes.
enum class Recompute { full, attention, activation, norm };
constexpr std::array<std::string_view, 4> names_of(Recompute) {
  return {"full", "attention", "activation", "norm"};
}

constexpr const char* peak_tflops_doc =
    "peak TFLOP/s of all processors, the denominator of perf/mfu; 0: measured at the start";

/// Type of the weights in checkpoints; auto: that of the files the run started from.
enum class SaveDtype { f32, automatic, bf16, f16 };
constexpr std::array<std::string_view, 4> names_of(SaveDtype) {
  return {"f32", "auto", "bf16", "f16"};
}

/// Type of the gradients and of the optimizer state.
enum class StateType { f32, bf16 };
constexpr std::array<std::string_view, 2> names_of(StateType) {
  return {"f32", "bf16"};
}

/// Type of the trained weights between updates. split is stored as f32: its upper half is the bf16
/// part and its lower half the residual (docs/decisions/0027-weights-in-two-bytes.md).
enum class WeightType { f32, split, bf16 };
constexpr std::array<std::string_view, 3> names_of(WeightType) {
  return {"f32", "split", "bf16"};
}

/// Checkpoints, part of `train`.
struct CheckpointConfig {
  std::int64_t save_every = 100;
  std::int64_t keep_last = 2;
  SaveDtype save_dtype = SaveDtype::f32;
  bool save_only_model = false;

  static void each_field(auto& self, auto&& field) {
    field("save_every", self.save_every, count_from_0,
          "save a checkpoint every N steps; 0: only after the last");
    field("keep_last", self.keep_last, kept_range, "checkpoints to keep (at least 2); 0: all");
    field("save_dtype", self.save_dtype,
          "data type of the weights in checkpoints; auto: as the model was stored; bf16, f16: the "
          "exact f32 weights are kept in training/, so that resuming keeps its bits. Adapters are "
          "stored in f32");
    field("save_only_model", self.save_only_model,
          "save checkpoints without optimizer state, for less space: the run cannot be resumed");
  }
};

/// Progress lines: troupe's, or those of Megatron-LM.
enum class LogStyle { troupe, megatron };
constexpr std::array<std::string_view, 2> names_of(LogStyle) {
  return {"troupe", "megatron"};
}

struct TrainConfig : OptimizerConfig, CheckpointConfig {
  std::int64_t steps = 0;
  double epochs = 1;
  std::int64_t batch_size = 8;
  algorithms::BatchRampup batch_rampup;
  std::int64_t micro_batch_tokens = 8192;
  /// The default costs about a hundredth of a step's time.
  std::vector<Recompute> recompute{Recompute::activation, Recompute::norm};
  engine::nn::RecomputeMethod recompute_method = engine::nn::RecomputeMethod::uniform;
  std::int64_t recompute_layers = 1;
  bool recompute_in_advance = false;
  std::string offload;
  double attention_dropout = 0, hidden_dropout = 0;
  bool share_prefixes = false;
  std::int64_t max_length = 0;
  engine::ops::Precision dtype = engine::ops::Precision::f32;
  WeightType weights = WeightType::f32;
  StateType gradients = StateType::f32;
  StateType moments = StateType::f32;
  double ema_decay = 0;
  engine::train::LossScaleConfig loss_scale;
  std::int64_t seed = 0;
  double peak_tflops = 0;
  std::int64_t threads = 0;
  bool pin_threads = false;
  std::string keep_best;
  std::string early_stopping_metric;
  std::int64_t early_stopping_patience = 3;
  std::int64_t log_every = 1;
  LogStyle log_style = LogStyle::troupe;
  std::int64_t timeout = 3600;

  static void each_field(auto& self, auto&& field) {
    field("steps", self.steps, count_from_0,
          "optimizer steps; overrides train.epochs; 0: as many as the epochs make");
    field("epochs", self.epochs, Range{0, 1e6, true},
          "passes over the data if train.steps is 0; 0.5: half of the rows");
    field("batch_size", self.batch_size, Range{1, 1 << 20},
          "rows, pairs or prompts per optimizer step");
    each_rampup_field(self, field);
    field("micro_batch_tokens", self.micro_batch_tokens, Range{1, 1 << 30},
          "tokens per forward and backward pass; trades memory for speed, never changes the loss");
    each_activation_field(self, field);
    field("share_prefixes", self.share_prefixes,
          "compute common prefixes of neighbouring sequences once (the prompt of a group or a "
          "pair), for less time and memory; losses keep their bits, gradients are summed in "
          "another order that depends on train.micro_batch_tokens");
    field("max_length", self.max_length, Range{0, 1 << 24},
          "maximum tokens per sequence; 0: the model's limit");
    OptimizerConfig::each_field(self, field);
    each_type_field(self, field);
    field("seed", self.seed, seed_range, "random seed for shuffling and sampling");
    field("peak_tflops", self.peak_tflops, at_least_0, peak_tflops_doc);
    field("threads", self.threads, Range{0, 1024},
          "threads; 0: all processors available to the process; never changes results");
    field("pin_threads", self.pin_threads,
          "pin each thread to a processor; only if the process has exactly as many processors as "
          "threads");
    CheckpointConfig::each_field(self, field);
    each_selection_field(self, field);
    each_log_field(self, field);
    field("timeout", self.timeout, Range{1, 604800},
          "timeout of a request to an actor (samples of a batch, an update, a save), in seconds");
  }

  static void each_rampup_field(auto& self, auto&& field) {
    field("batch_rampup.start", self.batch_rampup.start, Range{0, 1 << 20},
          "pretrain: size of the first batches, which grow to train.batch_size; 0: no ramp-up");
    field("batch_rampup.increment", self.batch_rampup.increment, Range{0, 1 << 20},
          "pretrain: samples by which a batch grows at a time");
    field("batch_rampup.samples", self.batch_rampup.samples, count_from_0,
          "pretrain: samples over which batches grow, in intervals of equal length");
  }

  static void each_activation_field(auto& self, auto&& field) {
    field("recompute", self.recompute,
          "activation recomputation, for less memory and identical results: full (keep only each "
          "layer's input), attention (selective), activation (of the MLPs), norm; a list combines "
          "several, [] keeps all activations");
    field("recompute_method", self.recompute_method,
          "which layers train.recompute: full recomputes; uniform: all, in groups of "
          "train.recompute_layers layers of which only the input is kept; block: the first "
          "train.recompute_layers layers of each stage, the others keep everything");
    field("recompute_layers", self.recompute_layers, Range{1, 1 << 16},
          "layers of a group (train.recompute_method: uniform), or recomputed layers of a stage "
          "(block)");
    field("recompute_in_advance", self.recompute_in_advance,
          "train.recompute: full with parallel.pp: a stage recomputes the layers whose gradients "
          "come first while it waits for the gradients of the next stage");
    field("offload", self.offload,
          "directory on a disk to which the saved activations are written until the backward pass "
          "reads them; empty: they stay in memory");
    field("attention_dropout", self.attention_dropout, from_0_below_1,
          "probability that a weight of attention is dropped in training passes");
    field("hidden_dropout", self.hidden_dropout, from_0_below_1,
          "probability that a value of the embeddings, or of what attention and MLP add to the "
          "hidden states, is dropped in training passes");
  }

  static void each_type_field(auto& self, auto&& field) {
    field("dtype", self.dtype,
          "data type of matrix products; sums are f32, and so are weights, gradients and optimizer "
          "state by default; f16: with train.loss_scale");
    field("loss_scale.initial", self.loss_scale.initial, Range{0, 1e30, true},
          "train.dtype: f16: factor of the loss at first; an update whose gradient overflows is "
          "skipped");
    field("loss_scale.minimum", self.loss_scale.minimum, Range{0, 1e30, true},
          "the loss scale never falls below this");
    field("loss_scale.window", self.loss_scale.window, count_from_1,
          "updates without an overflow after which the loss scale doubles");
    field("loss_scale.hysteresis", self.loss_scale.hysteresis, count_from_1,
          "number of the overflow, since the loss scale last grew, from which on each halves it");
    field("weights", self.weights,
          "type of the trained weights; bf16: 2 bytes, rounded stochastically after each update; "
          "split: bf16 and a 16-bit residual, together the 4 bytes of f32, with train.dtype: bf16");
    field("gradients", self.gradients,
          "type of the gradients; bf16: 2 bytes, rounded to the nearest value after each "
          "micro-batch; an adapter's are f32");
    field("moments", self.moments,
          "type of AdamW's two moments; bf16: half of their memory, rounded stochastically after "
          "each update");
    field("ema_decay", self.ema_decay, from_0_below_1,
          "keep an exponential moving average of the weights, of which each update keeps this "
          "share; saved as the model directory ema/ of a checkpoint; 0: none");
  }

  static void each_log_field(auto& self, auto&& field) {
    field("log_every", self.log_every, count_from_0,
          "steps between progress lines if stderr is not a terminal; 0: none");
    field("log_style", self.log_style,
          "troupe: progress on stderr; megatron: Megatron-LM's log lines on stdout as well, every "
          "train.log_every steps");
  }

  static void each_selection_field(auto& self, auto&& field) {
    field(
        "keep_best", self.keep_best,
        "metric of the evaluation, such as eval/loss or eval/reward: the checkpoint with its best "
        "value is kept, and the link `best` in output names it; -METRIC: lower is better, "
        "+METRIC: higher is better; empty: off");
    field("early_stopping.metric", self.early_stopping_metric,
          "end the run when this metric of the evaluation no longer improves; as in "
          "train.keep_best; empty: off");
    field("early_stopping.patience", self.early_stopping_patience, count_from_1,
          "evaluations without an improvement that end the run");
  }
};

struct CriticConfig : OptimizerConfig {
  CriticConfig() { schedule = engine::optim::ScheduleKind::constant; }

  std::string model;
  algorithms::ValueLoss loss;
  std::int64_t warmup_rounds = 0;

  static void each_field(auto& self, auto&& field) {
    field("model", self.model,
          "model directory of a critic, an outcome reward model or a language model to start from; "
          "empty: the initial weights");
    algorithms::ValueLoss::each_field(self.loss, field);
    field("warmup_rounds", self.warmup_rounds, Range{0, 1 << 30},
          "rollout steps in which only the critic is trained");
    OptimizerConfig::each_field(self, field);
  }
};

}  // namespace troupe::launch::config
