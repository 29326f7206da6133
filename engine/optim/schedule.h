// Learning-rate schedules as pure functions of the number of updates done: the multipliers of
// transformers' get_*_schedule (huggingface/transformers: src/transformers/optimization.py), with
// its step convention: LambdaLR gives update k (from 0) the factor of k.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/error.h"

namespace troupe::engine::optim {

struct ScheduleOptions {
  std::int64_t total_steps = 0;   ///< updates of the run; unused by constant and inverse_sqrt
  std::int64_t warmup_steps = 0;  ///< linear warm-up: factor 0 at update 0, 1 at this update
  double min_ratio = 0;           ///< final factor of linear, cosine and wsd
  std::int64_t decay_steps = 0;   ///< wsd: length of the final decay; 0: a tenth of the run
};

/// transformers' names; wsd is its warmup_stable_decay.
enum class ScheduleKind : std::uint8_t { constant, linear, cosine, inverse_sqrt, wsd };
constexpr std::array<std::string_view, 5> names_of(ScheduleKind) {
  return {"constant", "linear", "cosine", "inverse_sqrt", "wsd"};
}

class Schedule {
 public:
  /// Unlike in transformers, constant uses warmup_steps and linear uses min_ratio. A warm-up longer
  /// than the run is cut off by its end. Errc::usage: a decay that does not fit the run, a ratio
  /// outside [0, 1].
  static Result<Schedule> create(ScheduleKind kind, const ScheduleOptions& options);

  /// Factor on the learning rate of the update after `updates_done` updates, in [0, 1].
  double operator()(std::int64_t updates_done) const;
  ScheduleKind kind() const { return kind_; }

 private:
  Schedule(ScheduleKind kind, const ScheduleOptions& options) : kind_(kind), options_(options) {}

  ScheduleKind kind_;
  ScheduleOptions options_;
};

}  // namespace troupe::engine::optim
