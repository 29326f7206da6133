#include "engine/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/text/text.h"

namespace troupe::engine::optim {
namespace {

double part(double done, double of) {
  return done / std::max(1.0, of);
}
double half_cosine(double progress) {
  return 0.5 * (1 + std::cos(std::numbers::pi * progress));
}
double with_floor(double factor, double floor) {
  return std::max(0.0, factor * (1 - floor) + floor);
}
double decay(DecayStyle style, double progress) {
  switch (style) {
    case DecayStyle::cosine:
      return half_cosine(progress);
    case DecayStyle::linear:
      return 1 - progress;
    case DecayStyle::exponential:
      return 2 * std::pow(0.5, progress) - 1;
    case DecayStyle::minus_sqrt:
      return 1 - std::sqrt(progress);
  }
  return 0;
}
Result<> check_ratio(std::string_view name, double ratio) {
  if (ratio >= 0 && ratio <= 1) return {};
  return fail(Errc::usage, cat(name, " must be a ratio in [0, 1], found ", ratio));
}

}  // namespace

double Schedule::operator()(double updates_done) const {
  const auto& [total_steps, warmup, start, floor, decay_steps, style] = options_;
  const double total = static_cast<double>(total_steps), last = static_cast<double>(decay_steps);
  // The factor is constant after the end; transformers' cosine would rise again.
  const bool ends = total > 0 && kind_ != ScheduleKind::constant;
  const double step = ends ? std::min(updates_done, total) : updates_done;
  if (step < warmup) return with_floor(step / warmup, start);
  switch (kind_) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::linear:
      return with_floor(1 - part(step - warmup, total - warmup), floor);
    case ScheduleKind::cosine:
      return with_floor(half_cosine(part(step - warmup, total - warmup)), floor);
    case ScheduleKind::inverse_sqrt: {
      if (ends && updates_done > total) return floor;
      const double timescale = warmup > 0 ? warmup : 10000;
      return std::max(floor, 1 / std::sqrt((step - warmup + timescale) / timescale));
    }
    case ScheduleKind::wsd: {
      const double stable = total - last;
      return step < stable ? 1 : with_floor(decay(style, part(step - stable, last)), floor);
    }
  }
  return 1;
}

Result<Schedule> Schedule::create(ScheduleKind kind, const ScheduleOptions& options) {
  const std::string_view name = names_of(kind)[static_cast<std::size_t>(kind)];
  ScheduleOptions with = options;
  const bool ends =
      kind == ScheduleKind::linear || kind == ScheduleKind::cosine || kind == ScheduleKind::wsd;
  if (!(with.warmup_steps >= 0))
    return fail(Errc::usage, cat("train.warmup_steps must be >= 0, found ", with.warmup_steps));
  if (ends && with.total_steps < 1)
    return fail(Errc::usage,
                cat("the schedule ", name, " needs the number of steps of the run, found ",
                    with.total_steps));
  RETURN_IF_ERROR(check_ratio("the minimum learning rate", with.min_ratio));
  RETURN_IF_ERROR(check_ratio("the learning rate at the start of the warmup", with.warmup_start));
  if (kind == ScheduleKind::constant && with.min_ratio > 0)
    return fail(Errc::usage,
                "the schedule constant has no minimum learning rate; use another schedule");
  if (kind == ScheduleKind::wsd) {
    const auto room = static_cast<std::int64_t>(
        std::max(0.0, static_cast<double>(with.total_steps) - with.warmup_steps));
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
