// Learning-rate schedules as pure functions of the number of updates done: the multipliers of
// transformers' get_*_schedule (huggingface/transformers: src/transformers/optimization.py) and of
// Megatron-LM (megatron/core/optimizer_param_scheduler.py), which agree where both define a
// schedule, with their step convention: update k (from 0) has the factor of k.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/errors/error.h"

namespace troupe::engine::optim {

/// Shape of the final decay of wsd, from 1 at its start to 0 at its end: cosine is transformers';
/// the others are those of Megatron's --lr-wsd-decay-style.
enum class DecayStyle : std::uint8_t { cosine, linear, exponential, minus_sqrt };
constexpr std::array<std::string_view, 4> names_of(DecayStyle) {
  return {"cosine", "linear", "exponential", "minus_sqrt"};
}

struct ScheduleOptions {
  /// Updates until the end of the decay, after which the factor is min_ratio. 0: never ends, for
  /// constant and inverse_sqrt only.
  std::int64_t total_steps = 0;
  double warmup_steps = 0;       ///< linear warm-up: factor 1 at this update, also between two
  double warmup_start = 0;       ///< factor at update 0 of the warm-up
  double min_ratio = 0;          ///< least factor after the warm-up
  std::int64_t decay_steps = 0;  ///< wsd: length of the final decay; 0: a tenth of the run
  DecayStyle decay_style = DecayStyle::cosine;  ///< of wsd
};

/// transformers' names; wsd is its warmup_stable_decay.
enum class ScheduleKind : std::uint8_t { constant, linear, cosine, inverse_sqrt, wsd };
constexpr std::array<std::string_view, 5> names_of(ScheduleKind) {
  return {"constant", "linear", "cosine", "inverse_sqrt", "wsd"};
}

class Schedule {
 public:
  /// Unlike in transformers, constant uses warmup_steps, and linear and inverse_sqrt use min_ratio.
  /// A warm-up longer than the run is cut off by its end. Errc::usage: a decay that does not fit
  /// the run, a ratio outside [0, 1].
  static Result<Schedule> create(ScheduleKind kind, const ScheduleOptions& options);

  /// Factor on the learning rate of the update after `updates_done` updates, in [0, 1]. Where
  /// batches grow, `updates_done` may be samples divided by those of a full batch.
  double operator()(double updates_done) const;
  ScheduleKind kind() const { return kind_; }

 private:
  Schedule(ScheduleKind kind, const ScheduleOptions& options) : kind_(kind), options_(options) {}

  ScheduleKind kind_;
  ScheduleOptions options_;
};

}  // namespace troupe::engine::optim
