#include "engine/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/text.h"

namespace troupe::engine::optim {
namespace {

double part(std::int64_t done, std::int64_t of) {
  return static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, of));
}
double half_cosine(double progress) {
  return 0.5 * (1 + std::cos(std::numbers::pi * progress));
}
double with_floor(double factor, double floor) {
  return std::max(0.0, factor * (1 - floor) + floor);
}

}  // namespace

double Schedule::operator()(std::int64_t updates_done) const {
  const auto& [total, warmup, floor, decay] = options_;
  // The factor is constant after the end; transformers' cosine would rise again.
  const std::int64_t step = kind_ == ScheduleKind::constant || kind_ == ScheduleKind::inverse_sqrt
                                ? updates_done
                                : std::min(updates_done, total);
  if (step < warmup) {
    const double rising = part(step, warmup);
    // Only this schedule applies the floor to its warm-up in transformers.
    return kind_ == ScheduleKind::wsd ? with_floor(rising, floor) : rising;
  }
  switch (kind_) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::linear:
      return with_floor(1 - part(step - warmup, total - warmup), floor);
    case ScheduleKind::cosine:
      return with_floor(half_cosine(part(step - warmup, total - warmup)), floor);
    case ScheduleKind::inverse_sqrt: {
      const double timescale = static_cast<double>(warmup > 0 ? warmup : 10000);
      return 1 / std::sqrt((static_cast<double>(step - warmup) + timescale) / timescale);
    }
    case ScheduleKind::wsd:
      return step < total - decay
                 ? 1
                 : with_floor(half_cosine(part(step - (total - decay), decay)), floor);
  }
  return 1;
}

Result<Schedule> Schedule::create(ScheduleKind kind, const ScheduleOptions& options) {
  const std::string_view name = names_of(kind)[static_cast<std::size_t>(kind)];
  ScheduleOptions with = options;
  const bool ends =
      kind == ScheduleKind::linear || kind == ScheduleKind::cosine || kind == ScheduleKind::wsd;
  if (with.warmup_steps < 0)
    return fail(Errc::usage, cat("train.warmup_steps must be >= 0, found ", with.warmup_steps));
  if (ends && with.total_steps < 1)
    return fail(Errc::usage,
                cat("the schedule ", name, " needs the number of steps of the run, found ",
                    with.total_steps));
  if (!(with.min_ratio >= 0 && with.min_ratio <= 1))
    return fail(Errc::usage,
                cat("the minimum learning rate must be a ratio in [0, 1], found ", with.min_ratio));
  if (!ends && with.min_ratio > 0)
    return fail(Errc::usage,
                cat("the schedule ", name,
                    " never ends, so it has no minimum learning rate; use linear, cosine or wsd"));
  if (kind == ScheduleKind::wsd) {
    const std::int64_t room = std::max<std::int64_t>(0, with.total_steps - with.warmup_steps);
    if (with.decay_steps == 0)
      with.decay_steps = std::min(std::max<std::int64_t>(1, with.total_steps / 10), room);
    if (with.decay_steps < 0 || with.decay_steps > room)
      return fail(Errc::usage,
                  cat("a decay of ", with.decay_steps, " steps does not fit into a run of ",
                      with.total_steps, " steps after ", with.warmup_steps, " of warm-up"));
  }
  return Schedule(kind, with);
}

}  // namespace troupe::engine::optim
