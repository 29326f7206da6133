#include "launch/journal/progress.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/text/text.h"
#include "launch/terminal/display_width.h"

namespace troupe::launch::journal {

namespace {

/// Four significant digits.
std::string brief(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.4g", value);
  return std::isnan(value) ? "n/a" : buffer;
}

/// A metric, and its name in the line.
struct Shown {
  std::string_view metric;
  const char* label;
};
/// The metrics of a method, most important first: the first list whose first metric there is.
constexpr std::array<std::array<Shown, 7>, 4> shown_metrics{{
    // The loss of reinforcement learning is around 0 whatever the policy does.
    {{{"reward", "reward"},
      {"kl", "kl"},
      {"objective/kl", "kl"},
      {"entropy", "entropy"},
      {"policy/entropy_avg", "entropy"},
      // Samples of older weights: by how many versions, and how far the policy has moved since.
      {"staleness/max", "staleness"},
      {"sampling/sampling_logp_difference/mean", "mismatch"}}},
    {{{"rewards/accuracies", "accuracy"}, {"loss", "loss"}, {"rewards/margins", "margin"}}},
    {{{"accuracy", "accuracy"}, {"loss", "loss"}, {"margin", "margin"}}},
    {{{"loss", "loss"}, {"rewards/margins", "margin"}}},
}};

algorithms::Metrics chosen(const algorithms::Metrics& metrics) {
  algorithms::Metrics out;
  for (const auto& list : shown_metrics) {
    if (!algorithms::find_metric(metrics, list[0].metric)) continue;
    for (const Shown& each : list)
      if (const double* value = algorithms::find_metric(metrics, each.metric))
        out.emplace_back(each.label, *value);
    return out;
  }
  return out;
}

/// A metric of earlier steps that this one does not have (the entropy, where nothing was trained)
/// keeps its place as n/a, so that the line does not flicker.
algorithms::Metrics with_missing(const algorithms::Metrics& before, algorithms::Metrics now) {
  for (std::size_t i = 0; i < before.size(); ++i)
    if (!algorithms::find_metric(now, before[i].first))
      now.insert(now.begin() + static_cast<std::ptrdiff_t>(std::min(i, now.size())),
                 {before[i].first, std::nan("")});
  return now;
}

std::string bar_of(std::int64_t done, std::int64_t total, int width) {
  return terminal::bar_text(static_cast<double>(done) / static_cast<double>(total), width);
}

}  // namespace

Progress::Progress(std::FILE* out, terminal::ProgressLine::Options options, std::int64_t log_every,
                   std::function<double()> now)
    : log_every_(log_every),
      terminal_(options.terminal),
      now_(std::move(now)),
      started_(now_()),
      line_(out, std::move(options), now_, [this](int bar) { return fields(bar); }) {
}

void Progress::begin(std::int64_t total_steps, std::int64_t done_steps) {
  total_ = total_steps;
  first_ = done_steps;
  done_ = done_steps;
  shown_.clear();
  started_ = now_();
  tokens_ = seconds_ = 0;
}

void Progress::step(std::int64_t step, const algorithms::Metrics& metrics, StepSpeed speed) {
  if (step == 0) return;  // an evaluation before the first step
  done_ = step;
  shown_ = with_missing(shown_, chosen(metrics));
  tokens_ += speed.tokens;
  seconds_ += speed.seconds;
  status_.clear();
  const bool due =
      log_every_ > 0 && (step % log_every_ == 0 || step == total_ || step == first_ + 1);
  line_.show(due, step == total_);
}

void Progress::status(std::string_view text, std::int64_t done, std::int64_t total) {
  status_ = terminal::one_line(text);
  status_done_ = done;
  status_total_ = total;
  show();
}

void Progress::finish() {
  status_.clear();
  line_.finish(false);
}

std::vector<terminal::ProgressField> Progress::fields(int bar) const {
  if (terminal_ && total_ == 0) return {};
  std::vector<terminal::ProgressField> out{{0, cat("step ", done_, '/', total_)}};
  const bool parts = !status_.empty() && status_total_ > 1;
  if (terminal_ && !parts && bar > 0) out.push_back({8, bar_of(done_, total_, bar)});
  if (parts) {
    out.push_back({2, status_});
    if (bar > 0) out.push_back({8, bar_of(status_done_, status_total_, bar)});
    out.push_back({3, cat(status_done_, '/', status_total_)});
  }
  int rank = 4;
  for (const auto& [name, value] : shown_) {
    out.push_back({rank, cat(name, ' ', brief(value))});
    rank = rank == 4 ? 6 : 7;
  }
  if (tokens_ > 0 && seconds_ > 0)
    out.push_back({5, cat(to_text(tokens_ / seconds_, 0), " tok/s")});
  if (done_ > first_ && total_ >= done_)
    out.push_back({1, terminal::eta_text(now_() - started_, static_cast<double>(done_ - first_),
                                         static_cast<double>(total_ - first_))});
  if (!status_.empty() && !parts) out.push_back({7, cat('(', status_, ')')});
  return out;
}

}  // namespace troupe::launch::journal
