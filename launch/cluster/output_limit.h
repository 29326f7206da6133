// OutputLimit: how much of a group's output is written to its log. The rest is dropped and counted,
// so that a process that prints without end fills neither the disk nor the terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace troupe::launch::cluster {

/// Limits of one group. `burst`: what may be written at once, after a pause.
struct OutputRate {
  std::size_t burst_bytes = 256 << 10, bytes_per_second = 4 << 10;
  std::size_t burst_lines = 4096, lines_per_second = 40;
  std::size_t tail_bytes = 64 << 10;  ///< last output that tail() keeps in full
};

class OutputLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  OutputLimit(OutputRate rate, Time now)
      : rate_(rate),
        bytes_(static_cast<double>(rate.burst_bytes)),
        lines_(static_cast<double>(rate.burst_lines)),
        refilled_(now) {}

  /// Whether `line` may be written. Once a limit is exceeded, lines are dropped for five seconds,
  /// so that the notices about them are few.
  bool admits(std::string_view line, Time now);
  /// What was dropped since the last call: "412 lines (80123 bytes) of output were dropped ...";
  /// "" for nothing.
  std::string take_notice();
  /// The lines of the last `tail_bytes` from the first dropped one on, in full. Empty if none of
  /// them was dropped.
  std::deque<std::string> take_tail();

 private:
  struct Line {
    std::string text;
    bool dropped;
  };
  void refill(Time now);
  bool take_tokens(std::size_t bytes);

  OutputRate rate_;
  double bytes_, lines_;  // that may be written now
  Time refilled_;
  bool dropping_ = false;
  std::size_t dropped_bytes_ = 0, dropped_lines_ = 0;
  std::deque<Line> tail_;
  std::size_t tail_size_ = 0;
};

}  // namespace troupe::launch::cluster
