#include "launch/terminal/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/terminal/display_width.h"

namespace troupe::launch::terminal {
namespace {

constexpr int full_bar = 20, short_bar = 10;

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

std::string eta_text(double seconds, double done, double total) {
  return cat("ETA ", clock_text(seconds / done * (total - done)));
}

std::string bar_text(double share, int width) {
  const auto filled = static_cast<std::size_t>(std::clamp(share * width, 0.0, 1.0 * width));
  return cat('[', std::string(filled, '#'),
             std::string(static_cast<std::size_t>(width) - filled, '.'), ']');
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ProgressLine::ProgressLine(std::FILE* out, Options options, std::function<double()> now,
                           Fields fields)
    : out_(out), options_(std::move(options)), now_(std::move(now)), fields_(std::move(fields)) {
}

bool ProgressLine::show(bool due, bool last) {
  const double interval = options_.terminal ? options_.redraw : options_.interval;
  if (!(due || options_.terminal) || (!last && now_() - shown_ < interval)) return false;
  shown_ = now_();
  if (options_.terminal) {
    redraw();
  } else {
    std::fprintf(out_, "%s\n", line().c_str());
    std::fflush(out_);
  }
  return true;
}

// The cursor rests at the start of the line: when a narrower terminal breaks the line, everything
// from there on is erased.
void ProgressLine::hide() {
  if (!options_.terminal) return;
  std::fputs("\r\x1b[J", out_);
  std::fflush(out_);
}

void ProgressLine::redraw() {
  if (!options_.terminal || fields_(0).empty()) return;
  std::fprintf(out_, "\r%s\x1b[J\r", line(std::max(1, options_.columns() - 1)).c_str());
  std::fflush(out_);
}

void ProgressLine::finish(bool due) {
  show(due, true);
  if (options_.terminal && !fields_(0).empty()) std::fputs("\n", out_);
}

std::string ProgressLine::line(int columns) const {
  const auto joined = [](const std::vector<ProgressField>& all) {
    std::string text;
    for (const ProgressField& field : all) text += (text.empty() ? "" : " ") + field.text;
    return text;
  };
  const auto limit = static_cast<std::size_t>(std::max(0, columns));
  for (const int bar : {full_bar, short_bar}) {
    std::string text = joined(fields_(bar));
    if (columns == 0 || display_width(text) <= limit) return text;
  }
  auto left = fields_(0);
  while (left.size() > 1 && display_width(joined(left)) > limit)
    left.erase(std::ranges::max_element(left, {}, &ProgressField::rank));
  return std::string(fit_width(joined(left), limit));
}

ProgressLine::Options stderr_options() {
  ProgressLine::Options options;
  const char* term = std::getenv("TERM");
  options.terminal = log_level() <= LogLevel::info && ::isatty(STDERR_FILENO) == 1 && term &&
                     std::string_view(term) != "dumb";
  options.columns = [] {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
  };
  return options;
}

}  // namespace troupe::launch::terminal
