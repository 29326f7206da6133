#include "launch/terminal/byte_progress.h"

#include <algorithm>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::launch::terminal {

ByteProgress::ByteProgress(std::FILE* out, ProgressLine::Options options, std::uint64_t total,
                           std::uint64_t before, std::function<double()> now)
    : now_(std::move(now)),
      started_(now_()),
      total_(static_cast<double>(std::max<std::uint64_t>(total, 1))),
      before_(static_cast<double>(before)),
      done_(before_),
      line_(out, std::move(options), now_, [this](int bar) { return fields(bar); }) {
}

std::vector<ProgressField> ByteProgress::fields(int bar) const {
  const double share = std::min(1.0, done_ / total_), seconds = now_() - started_;
  const double bytes = std::max(0.0, done_ - before_);
  std::vector<ProgressField> out;
  if (bar > 0) out.push_back({8, bar_text(share, bar)});
  out.push_back({0, cat(static_cast<int>(100 * share), " %")});
  out.push_back({4, counts_});
  out.push_back({5, cat(seconds > 0 ? to_text(bytes / seconds / 1e6, 2) : "0", " MB/s")});
  if (bytes > 0 && seconds > 0)
    out.push_back({1, eta_text(seconds, bytes, std::max(bytes, total_ - before_))});
  return out;
}

void ByteProgress::set(std::uint64_t done, std::string counts) {
  done_ = static_cast<double>(done);
  counts_ = std::move(counts);
}

bool ByteProgress::show(std::uint64_t done, std::string counts, bool due) {
  set(done, std::move(counts));
  return line_.show(due);
}

void ByteProgress::finish(std::uint64_t done, std::string counts, bool due) {
  set(done, std::move(counts));
  line_.finish(due);
}

}  // namespace troupe::launch::terminal
