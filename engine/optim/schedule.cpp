#include "engine/optim/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "engine/base/text.h"

namespace troupe::engine::optim {
namespace {

using Kind = Schedule::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 8> kinds = {
    {{"constant", Kind::constant},
     {"constant_with_warmup", Kind::constant},
     {"linear", Kind::linear},
     {"cosine", Kind::cosine},
     {"cosine_with_min_lr", Kind::cosine},
     {"inverse_sqrt", Kind::inverse_sqrt},
     {"warmup_stable_decay", Kind::wsd},
     {"wsd", Kind::wsd}}};

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
  // After the end the factor is constant; transformers' cosine would rise again.
  const std::int64_t step = kind_ == Kind::constant || kind_ == Kind::inverse_sqrt
                                ? updates_done
                                : std::min(updates_done, total);
  if (step < warmup) {
    const double rising = part(step, warmup);
    // In transformers only this schedule applies the floor to its warm-up.
    return kind_ == Kind::wsd ? with_floor(rising, floor) : rising;
  }
  switch (kind_) {
    case Kind::constant:
      return 1;
    case Kind::linear:
      return with_floor(1 - part(step - warmup, total - warmup), floor);
    case Kind::cosine:
      return with_floor(half_cosine(part(step - warmup, total - warmup)), floor);
    case Kind::inverse_sqrt: {
      const double timescale = static_cast<double>(warmup > 0 ? warmup : 10000);
      return 1 / std::sqrt((static_cast<double>(step - warmup) + timescale) / timescale);
    }
    case Kind::wsd:
      return step < total - decay
                 ? 1
                 : with_floor(half_cosine(part(step - (total - decay), decay)), floor);
  }
  return 1;
}

Result<Schedule> Schedule::create(std::string_view name, const ScheduleOptions& options) {
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const auto& kind) { return kind.first == name; });
  if (found == kinds.end()) {
    const std::string near = nearest(name, schedule_names());
    return fail(Errc::usage,
                cat("train.schedule: expected one of ", join(schedule_names(), ", "), "; found ",
                    quote(name), near.empty() ? "" : cat(" (did you mean ", near, "?)")));
  }
  const Kind kind = found->second;
  ScheduleOptions with = options;
  const bool ends = kind == Kind::linear || kind == Kind::cosine || kind == Kind::wsd;
  if (with.warmup_steps < 0)
    return fail(Errc::usage, cat("train.warmup_steps must be >= 0, found ", with.warmup_steps));
  if (ends && with.total_steps < 1)
    return fail(Errc::usage,
                cat("the schedule ", name, " needs the number of steps of the run, found ",
                    with.total_steps));
  if (ends && with.warmup_steps > with.total_steps)
    return fail(Errc::usage, cat("train.warmup_steps is ", with.warmup_steps, ", more than the ",
                                 with.total_steps, " steps of the run"));
  if (!(with.min_ratio >= 0 && with.min_ratio <= 1))
    return fail(Errc::usage,
                cat("the minimum learning rate must be a ratio in [0, 1], found ", with.min_ratio));
  if (!ends && with.min_ratio > 0)
    return fail(Errc::usage,
                cat("the schedule ", name,
                    " never ends, so it has no minimum learning rate; use linear, cosine or wsd"));
  if (kind == Kind::wsd) {
    if (with.decay_steps == 0)
      with.decay_steps = std::min(std::max<std::int64_t>(1, with.total_steps / 10),
                                  with.total_steps - with.warmup_steps);
    if (with.decay_steps < 0 || with.decay_steps > with.total_steps - with.warmup_steps)
      return fail(Errc::usage,
                  cat("a decay of ", with.decay_steps, " steps does not fit into a run of ",
                      with.total_steps, " steps after ", with.warmup_steps, " of warm-up"));
  }
  return Schedule(kind, with);
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& kind : kinds) out.emplace_back(kind.first);
    return out;
  }();
  return names;
}

}  // namespace troupe::engine::optim
