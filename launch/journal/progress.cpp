#include "launch/journal/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/base/text.h"

namespace troupe::launch {

namespace {

/// Four significant digits.
std::string brief(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.4g", value);
  return buffer;
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
    : out_(out), options_(options), now_(std::move(now)) {
  started_ = now_();
}

void Progress::begin(std::int64_t total_steps, std::int64_t done_steps) {
  total_ = total_steps;
  first_ = done_steps;
  done_ = done_steps;
  started_ = now_();
  tokens_ = 0;
}

void Progress::step(std::int64_t step, const algorithms::Metrics& metrics) {
  done_ = step;
  shown_.clear();
  for (const auto& [name, value] : metrics) {
    if (name == "loss" || name == "reward" || name == "rewards/accuracies")
      shown_.emplace_back(name, value);
    if (name == "tokens") tokens_ += value;
  }
  status_.clear();
  if (options_.terminal) return show();
  const bool due = options_.log_every > 0 &&
                   (step % options_.log_every == 0 || step == total_ || step == first_ + 1);
  if (!due || (now_() - last_line_ < options_.interval && step != total_)) return;
  last_line_ = now_();
  std::fprintf(out_, "%s\n", line().c_str());
  std::fflush(out_);
}

void Progress::status(std::string_view text) {
  status_ = text;
  if (options_.terminal) show();
}

void Progress::hide() {
  if (!options_.terminal) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
}

void Progress::finish() {
  if (!options_.terminal || total_ == 0) return;
  show();
  std::fputs("\n", out_);
}

void Progress::show() {
  if (!options_.terminal || total_ == 0) return;
  std::fprintf(
      out_, "\r%s\x1b[K",
      line().substr(0, static_cast<std::size_t>(std::max(20, options_.columns - 1))).c_str());
  std::fflush(out_);
}

std::string Progress::line() const {
  std::string text = cat("step ", done_, '/', total_);
  if (options_.terminal && total_ > 0) {
    constexpr std::int64_t width = 20;
    const auto filled =
        static_cast<std::size_t>(std::clamp<std::int64_t>(done_ * width / total_, 0, width));
    text += cat(" [", std::string(filled, '#'), std::string(width - filled, '.'), ']');
  }
  for (const auto& [name, value] : shown_)
    text += cat(' ', name == "rewards/accuracies" ? "accuracy" : name, ' ', brief(value));
  const double seconds = now_() - started_;
  if (tokens_ > 0 && seconds > 0) text += cat(' ', to_text(tokens_ / seconds, 0), " tok/s");
  if (done_ > first_ && total_ >= done_) {
    text += cat(" ETA ", clock_text(seconds / static_cast<double>(done_ - first_) *
                                    static_cast<double>(total_ - done_)));
  }
  if (!status_.empty()) text += cat(" (", status_, ')');
  return text;
}

Progress::Options stderr_options(std::int64_t log_every) {
  Progress::Options options;
  const char* term = std::getenv("TERM");
  options.terminal = ::isatty(STDERR_FILENO) == 1 && term && std::string_view(term) != "dumb";
  options.log_every = log_every;
  winsize size{};
  if (options.terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    options.columns = size.ws_col;
  return options;
}

}  // namespace troupe::launch
