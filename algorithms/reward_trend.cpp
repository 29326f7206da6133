#include "algorithms/reward_trend.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace troupe::algorithms {

namespace {

constexpr std::size_t trend_window = 10, last_steps = 3;
constexpr std::int64_t trend_memory = 100;  ///< steps within which a rising reward has a new best

double mean_of_range(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

void RewardTrend::add(double reward) {
  if (!std::isfinite(reward)) return;
  ++count_;
  if (first_.size() < trend_window) first_.push_back(reward);
  if (!recent_.empty()) {
    const double change = reward - recent_.back();
    squares_ +=
        (change * change - squares_) / static_cast<double>(std::min<std::int64_t>(count_, 20));
  }
  recent_.push_back(reward);
  if (recent_.size() > trend_window) recent_.erase(recent_.begin());
  if (recent_.size() < trend_window) return;
  const double mean = mean_of_range(recent_);
  if (best_at_ > 0 && mean < best_) return;
  best_ = mean;
  best_at_ = count_;
}

std::size_t RewardTrend::window() const {
  return std::min(trend_window, static_cast<std::size_t>(count_) / 2);
}

RewardTrend::Change RewardTrend::change() const {
  const std::size_t size = window();
  if (size < 2) return {std::nan(""), std::nan(""), std::nan(""), 0};
  const std::span<const double> recent(recent_);
  return {mean_of_range(std::span(first_).first(size)), mean_of_range(recent.last(size)),
          mean_of_range(recent.last(std::min(last_steps, size))), std::sqrt(squares_ / 2)};
}

bool RewardTrend::stopped() const {
  if (window() < 2) return true;
  const auto [start, now, last, step_error] = change();
  const double error = step_error / std::sqrt(static_cast<double>(window()));
  const double best = best_at_ > 0 ? std::max(best_, now) : now;
  const bool rose = best > start + 2 * error,
             near = now >= best - std::max(2 * error, 0.2 * (best - start));
  return !rose || !near || count_ - std::max(best_at_, std::int64_t{1}) > trend_memory;
}

bool RewardTrend::rose() const {
  if (window() < 2) return false;
  const auto [start, now, last, step_error] = change();
  const auto steps = static_cast<double>(window());
  const auto above = [&](double before, double of_difference) {
    return now > before + std::max(2 * step_error * of_difference, 0.05 * std::abs(before));
  };
  return above(start, std::sqrt(2 / steps)) || above(first_.front(), std::sqrt(1 + 1 / steps));
}

bool RewardTrend::fell() const {
  if (window() < 2) return false;
  const auto [start, now, last, step_error] = change();
  const double error = step_error / std::sqrt(static_cast<double>(std::min(last_steps, window())));
  return last < start - std::max(2 * error, 0.5 * std::abs(start));
}

}  // namespace troupe::algorithms
