#include "launch/journal/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "launch/journal/display_width.h"

namespace troupe::launch::journal {

namespace {

constexpr int full_bar = 20, short_bar = 10;

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

std::string bar_text(std::int64_t done, std::int64_t total, int width) {
  const auto filled =
      static_cast<std::size_t>(std::clamp<std::int64_t>(done * width / total, 0, width));
  return cat('[', std::string(filled, '#'),
             std::string(static_cast<std::size_t>(width) - filled, '.'), ']');
}

}  // namespace

std::string clock_text(double seconds) {
  const auto all = static_cast<std::int64_t>(std::max(0.0, std::min(seconds, 1e9)));
  char buffer[40];
  if (all >= 3600)
    std::snprintf(buffer, sizeof(buffer), "%lld:%02d:%02d", static_cast<long long>(all / 3600),
                  static_cast<int>(all / 60 % 60), static_cast<int>(all % 60));
  else
    std::snprintf(buffer, sizeof(buffer), "%d:%02d", static_cast<int>(all / 60),
                  static_cast<int>(all % 60));
  return buffer;
}

Progress::Progress(std::FILE* out, Options options, std::function<double()> now)
    : out_(out), options_(std::move(options)), now_(std::move(now)) {
  started_ = now_();
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
  if (options_.terminal) return show();
  const bool due = options_.log_every > 0 &&
                   (step % options_.log_every == 0 || step == total_ || step == first_ + 1);
  if (!due || (now_() - last_line_ < options_.interval && step != total_)) return;
  last_line_ = now_();
  std::fprintf(out_, "%s\n", line().c_str());
  std::fflush(out_);
}

void Progress::status(std::string_view text, std::int64_t done, std::int64_t total) {
  status_ = one_line(text);
  status_done_ = done;
  status_total_ = total;
  if (options_.terminal) show();
}

// The cursor rests at the start of the line: when a narrower terminal breaks the line, everything
// from there on is erased.
void Progress::hide() {
  if (!options_.terminal) return;
  std::fputs("\r\x1b[J", out_);
  std::fflush(out_);
}

void Progress::finish() {
  if (!options_.terminal || total_ == 0) return;
  status_.clear();
  show();
  std::fputs("\n", out_);
}

void Progress::show() {
  if (!options_.terminal || total_ == 0) return;
  std::fprintf(out_, "\r%s\x1b[J\r", line(std::max(1, options_.columns() - 1)).c_str());
  std::fflush(out_);
}

std::vector<Progress::Field> Progress::fields(int bar) const {
  std::vector<Field> out{{0, cat("step ", done_, '/', total_)}};
  const bool parts = !status_.empty() && status_total_ > 1;
  if (options_.terminal && total_ > 0 && !parts && bar > 0)
    out.push_back({8, bar_text(done_, total_, bar)});
  if (parts) {
    out.push_back({2, status_});
    if (bar > 0) out.push_back({8, bar_text(status_done_, status_total_, bar)});
    out.push_back({3, cat(status_done_, '/', status_total_)});
  }
  int rank = 4;
  for (const auto& [name, value] : shown_) {
    out.push_back({rank, cat(name, ' ', brief(value))});
    rank = rank == 4 ? 6 : 7;
  }
  if (tokens_ > 0 && seconds_ > 0)
    out.push_back({5, cat(to_text(tokens_ / seconds_, 0), " tok/s")});
  if (done_ > first_ && total_ >= done_) {
    const double each = (now_() - started_) / static_cast<double>(done_ - first_);
    out.push_back({1, cat("ETA ", clock_text(each * static_cast<double>(total_ - done_)))});
  }
  if (!status_.empty() && !parts) out.push_back({7, cat('(', status_, ')')});
  return out;
}

std::string Progress::line(int columns) const {
  const auto joined = [](const std::vector<Field>& all) {
    std::string text;
    for (const Field& field : all) text += (text.empty() ? "" : " ") + field.text;
    return text;
  };
  const auto limit = static_cast<std::size_t>(std::max(0, columns));
  for (const int bar : {full_bar, short_bar}) {
    std::string text = joined(fields(bar));
    if (columns == 0 || display_width(text) <= limit) return text;
  }
  auto left = fields(0);
  while (left.size() > 1 && display_width(joined(left)) > limit)
    left.erase(std::ranges::max_element(left, {}, &Field::rank));
  return std::string(fit_width(joined(left), limit));
}

Progress::Options stderr_options(std::int64_t log_every) {
  Progress::Options options;
  if (log_level() > LogLevel::info) return {.log_every = 0};
  const char* term = std::getenv("TERM");
  options.terminal = ::isatty(STDERR_FILENO) == 1 && term && std::string_view(term) != "dumb";
  options.log_every = log_every;
  options.columns = [] {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
  };
  return options;
}

}  // namespace troupe::launch::journal
