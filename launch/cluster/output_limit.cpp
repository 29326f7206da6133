#include "launch/cluster/output_limit.h"

#include <algorithm>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::launch::cluster {
namespace {

constexpr double pause_seconds = 5;
// Date, level and rank, which the log adds to a line.
constexpr std::size_t added_bytes = 48;

}  // namespace

bool OutputLimit::admits(std::string_view line, Time now) {
  refill(now);
  const bool admitted = take_tokens(line.size() + added_bytes);
  if (!admitted) {
    ++dropped_lines_;
    dropped_bytes_ += line.size() + 1;
  }
  tail_.push_back({std::string(line), !admitted});
  tail_size_ += line.size() + 1;
  while (tail_size_ > rate_.tail_bytes) {
    tail_size_ -= tail_.front().text.size() + 1;
    tail_.pop_front();
  }
  return admitted;
}

void OutputLimit::refill(Time now) {
  const double seconds = std::chrono::duration<double>(now - refilled_).count();
  refilled_ = now;
  const auto add = [seconds](double& tokens, std::size_t rate, std::size_t burst) {
    tokens = std::min(tokens + seconds * static_cast<double>(rate), static_cast<double>(burst));
  };
  add(bytes_, rate_.bytes_per_second, rate_.burst_bytes);
  add(lines_, rate_.lines_per_second, rate_.burst_lines);
}

bool OutputLimit::take_tokens(std::size_t bytes) {
  const auto pause = [this](double rate) { return dropping_ ? pause_seconds * rate : 0; };
  const double size = static_cast<double>(bytes),
               wanted = std::max(size, pause(static_cast<double>(rate_.bytes_per_second)));
  dropping_ = bytes_ < std::min(wanted, static_cast<double>(rate_.burst_bytes)) ||
              lines_ < std::max(1.0, pause(static_cast<double>(rate_.lines_per_second)));
  if (dropping_) return false;
  bytes_ -= size;
  lines_ -= 1;
  return true;
}

std::string OutputLimit::take_notice() {
  const std::size_t lines = std::exchange(dropped_lines_, 0),
                    bytes = std::exchange(dropped_bytes_, 0);
  if (lines == 0) return "";
  return cat(lines, lines == 1 ? " line (" : " lines (", bytes,
             " bytes) of output dropped: more than ", rate_.bytes_per_second, " bytes or ",
             rate_.lines_per_second, " lines per second");
}

std::deque<std::string> OutputLimit::take_tail() {
  const auto first = std::ranges::find_if(tail_, &Line::dropped);
  std::deque<std::string> lines;
  for (auto each = first; each != tail_.end(); ++each) lines.push_back(std::move(each->text));
  tail_.clear();
  tail_size_ = 0;
  return lines;
}

}  // namespace troupe::launch::cluster
