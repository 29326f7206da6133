#include "launch/tools/preprocess/progress_bar.h"

#include <algorithm>

#include "engine/base/text.h"

namespace troupe::launch::tools::preprocess {
namespace {

constexpr int bar_width = 20;
constexpr double redraw_seconds = 0.2, line_seconds = 1;

}  // namespace

PreprocessBar::PreprocessBar(std::FILE* out, Options options, std::function<double()> now)
    : out_(out), options_(std::move(options)), now_(std::move(now)) {
  started_ = now_();
  shown_rows_ = options_.before.rows;
}

std::string PreprocessBar::line(const PreprocessCounts& counts) const {
  const double all = std::max(1.0, static_cast<double>(options_.bytes));
  const double share = std::min(1.0, static_cast<double>(counts.bytes) / all);
  const auto filled = static_cast<std::size_t>(share * bar_width);
  const double seconds = now_() - started_;
  const auto bytes = static_cast<double>(counts.bytes) - static_cast<double>(options_.before.bytes);
  return cat('[', std::string(filled, '#'), std::string(bar_width - filled, '.'), "] ",
             static_cast<int>(100 * share), " % ", counts.rows, " rows ", counts.tokens, " tokens ",
             seconds > 0 ? to_text(std::max(0.0, bytes) / seconds / 1e6, 2) : "0", " MB/s");
}

void PreprocessBar::show(const PreprocessCounts& counts) {
  const bool due = options_.terminal || (options_.log_interval > 0 &&
                                         counts.rows - shown_rows_ >= options_.log_interval);
  if (!due || now_() - shown_ < (options_.terminal ? redraw_seconds : line_seconds)) return;
  shown_ = now_();
  shown_rows_ = counts.rows;
  std::fprintf(out_, options_.terminal ? "\r%s\x1b[K" : "%s\n", line(counts).c_str());
  std::fflush(out_);
}

void PreprocessBar::finish(const PreprocessCounts& counts) {
  if (options_.terminal)
    std::fprintf(out_, "\r%s\x1b[K\n", line(counts).c_str());
  else if (options_.log_interval > 0)
    std::fprintf(out_, "%s\n", line(counts).c_str());
  std::fflush(out_);
}

}  // namespace troupe::launch::tools::preprocess
