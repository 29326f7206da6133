// Learning-rate schedules as pure functions of the number of updates done: the multipliers of
// transformers' get_*_schedule (huggingface/transformers: src/transformers/optimization.py), with
// its step convention: LambdaLR gives update k (from 0) the factor of k.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace troupe::engine::optim {

struct ScheduleOptions {
  std::int64_t total_steps = 0;   ///< updates of the run; unused by constant and inverse_sqrt
  std::int64_t warmup_steps = 0;  ///< linear warm-up: factor 0 at update 0, 1 at this update
  double min_ratio = 0;           ///< final factor of linear, cosine and wsd
  std::int64_t decay_steps = 0;   ///< wsd: length of the final decay; 0: a tenth of the run
};

class Schedule {
 public:
  enum class Kind : std::uint8_t { constant, linear, cosine, inverse_sqrt, wsd };

  /// Creates a schedule by transformers' name: "constant", "constant_with_warmup", "linear",
  /// "cosine", "cosine_with_min_lr", "inverse_sqrt", "warmup_stable_decay" or "wsd". Unlike in
  /// transformers, "constant" uses warmup_steps and "linear" uses min_ratio. Errc::usage: an
  /// unknown name, steps that do not fit the run, a ratio outside [0, 1].
  static Result<Schedule> create(std::string_view name, const ScheduleOptions& options);

  /// Factor on the learning rate of the update after `updates_done` updates, in [0, 1].
  double operator()(std::int64_t updates_done) const;
  Kind kind() const { return kind_; }

 private:
  Schedule(Kind kind, const ScheduleOptions& options) : kind_(kind), options_(options) {}

  Kind kind_;
  ScheduleOptions options_;
};

/// The names that Schedule::create accepts.
const std::vector<std::string>& schedule_names();

}  // namespace troupe::engine::optim
