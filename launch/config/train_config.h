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
#include "algorithms/losses/loss_average.h"
#include "algorithms/losses/value_loss.h"
#include "engine/base/json/fields.h"
#include "engine/base/json/ranges.h"
#include "engine/optim/schedule.h"
#include "engine/train/trainer.h"

namespace troupe::launch::config {

/// The learning rate, part of `train` and `critic`.
struct ScheduleConfig {
  double learning_rate = 1e-5;
  engine::optim::ScheduleKind schedule = engine::optim::ScheduleKind::linear;
  double warmup_steps = 0;
  double warmup_ratio = 0;
  double warmup_start_ratio = -1;
  std::int64_t schedule_steps = 0;
  std::int64_t decay_steps = 0;
  engine::optim::DecayStyle decay_style = engine::optim::DecayStyle::cosine;
  double min_lr_ratio = 0;

  static void each_field(auto& self, auto&& field) {
    field("learning_rate", self.learning_rate, Range{0, 10}, "peak learning rate");
    field("schedule", self.schedule, "learning-rate schedule after the warmup");
    field("warmup_steps", self.warmup_steps, Range{0, 1e12},
          "steps of linear warmup, which may be a fraction, such as 2.5");
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
  }
  /// Steps of warmup in a run of `steps`, rounded up as in transformers.
  double warmup_of(std::int64_t steps) const {
    return warmup_ratio > 0 ? std::ceil(warmup_ratio * static_cast<double>(steps)) : warmup_steps;
  }
  /// Whether the warmup ends in a run of `steps`.
  bool warms_up_in(std::int64_t steps) const {
    return warmup_of(steps) < static_cast<double>(steps);
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

constexpr const char* peak_tflops_doc =
    "peak TFLOP/s of all processors, the denominator of perf/mfu; 0: measured at the start";

/// Type of the weights in checkpoints; auto: that of the files the run started from.
enum class SaveDtype { f32, automatic, bf16, f16 };
constexpr std::array<std::string_view, 4> names_of(SaveDtype) {
  return {"f32", "auto", "bf16", "f16"};
}

/// What schedules count; they differ while batches grow (train.batch_rampup). Megatron-LM's count
/// samples.
enum class ScheduleUnit { steps, samples };
constexpr std::array<std::string_view, 2> names_of(ScheduleUnit) {
  return {"steps", "samples"};
}

/// Checkpoints, part of `train`.
struct CheckpointConfig {
  std::int64_t save_every = 100;
  int keep_last = 2;
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

struct TrainConfig : ScheduleConfig, engine::train::TrainerOptions, CheckpointConfig {
  std::int64_t steps = 0;
  double epochs = 1;
  std::int64_t batch_size = 8;
  algorithms::BatchRampup batch_rampup;
  ScheduleUnit schedule_unit = ScheduleUnit::steps;
  algorithms::LossAverage average;
  std::int64_t max_length = 0;
  std::int64_t seed = 0;
  double peak_tflops = 0;
  int threads = 0;
  bool pin_threads = false;
  std::string keep_best;
  std::string early_stopping_metric;
  std::int64_t early_stopping_patience = 3;
  std::int64_t log_every = 1;
  LogStyle log_style = LogStyle::troupe;
  bool log_throughput = false;
  std::int64_t timeout = 3600;

  static void each_field(auto& self, auto&& field) {
    field("steps", self.steps, count_from_0,
          "optimizer steps; overrides train.epochs; 0: as many as the epochs make");
    field("epochs", self.epochs, Range{0, 1e6, true},
          "passes over the data if train.steps is 0; 0.5: half of the rows");
    field("batch_size", self.batch_size, Range{1, 1 << 20},
          "rows, pairs or prompts per optimizer step");
    each_rampup_field(self, field);
    algorithms::LossAverage::each_field(self.average, field);
    each_pass_field(self, field);
    field("max_length", self.max_length, Range{0, 1 << 24},
          "maximum tokens per sequence; 0: the model's limit");
    ScheduleConfig::each_field(self, field);
    engine::optim::AdamWConfig::each_field(self.optimizer, field);
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
    field("schedule_unit", self.schedule_unit,
          "pretrain: what the learning rate follows while batches grow; samples: the samples "
          "consumed divided by train.batch_size, as in Megatron-LM");
  }

  static void each_log_field(auto& self, auto&& field) {
    field("log_every", self.log_every, count_from_0,
          "steps between progress lines if stderr is not a terminal; 0: none");
    field("log_style", self.log_style,
          "troupe: progress on stderr; megatron: Megatron-LM's log lines on stdout as well, every "
          "train.log_every steps");
    field("log_throughput", self.log_throughput,
          "with train.log_style: megatron, the lines have TFLOP/s of a rank (Megatron-LM's "
          "--log-throughput)");
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

struct CriticConfig : ScheduleConfig {
  CriticConfig() { schedule = engine::optim::ScheduleKind::constant; }

  std::string model;
  engine::optim::AdamWConfig optimizer;
  algorithms::ValueLoss loss;
  int warmup_rounds = 0;

  static void each_field(auto& self, auto&& field) {
    field("model", self.model,
          "model directory of a critic, an outcome reward model or a language model to start from; "
          "empty: the initial weights");
    algorithms::ValueLoss::each_field(self.loss, field);
    field("warmup_rounds", self.warmup_rounds, Range{0, 1 << 30},
          "rollout steps in which only the critic is trained");
    ScheduleConfig::each_field(self, field);
    engine::optim::AdamWConfig::each_field(self.optimizer, field);
  }
};

}  // namespace troupe::launch::config
