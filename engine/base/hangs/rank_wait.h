// RankWait: what a thread that waits for other ranks of its group reports.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/hangs/hang_detector.h"

namespace troupe::progress {

/// Functions of the program, which a loaded module calls: it has variables of its own.
struct WaitReports {
  std::uint64_t (*total_pieces)();
  /// The calling thread waits, and need not advance, until end_wait().
  void (*begin_wait)();
  void (*end_wait)();
  /// `hang` is a sentence without a full stop: warns and adds it to hangs().
  void (*add_hang)(const std::string& key, const std::string& hang);
  /// Removes it, and logs that there is progress again.
  void (*remove_hang)(const std::string& key, const std::string& what);
};
WaitReports wait_reports();

/// The time after which a thread or rank without progress is reported: 20 s.
std::chrono::milliseconds warn_after();
/// For tests of whole programs: the value of the environment variable TROUPE_TEST_WARN_AFTER_MS
/// takes the place of the 20 s.
void take_warn_after_from_environment();

/// One wait of one thread for other ranks. From its first second on the thread need not advance.
/// If the ranks that it waits for make no progress, the wait warns, two seconds later than they
/// warn themselves where they can.
class RankWait {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `rank`: the one that waits. `what`: name of the operation, which outlives this.
  RankWait(const WaitReports& reports, std::chrono::milliseconds warn_after, int rank,
           std::string_view what, Time now)
      : reports_(reports), warn_after_(warn_after), rank_(rank), what_(what), next_(now + period) {}
  ~RankWait();
  RankWait(const RankWait&) = delete;

  /// Whether look() should be called: once a second.
  bool due(Time now) const { return now >= next_; }
  Time next() const { return next_; }
  /// `ranks`: those that have not come, "rank 2 (process 4711, stopped by SIGSTOP)" or
  /// "ranks 1, 2"; `progress`: changes when they advance.
  /// Returns how long that has been unchanged.
  std::chrono::milliseconds look(const std::string& ranks, std::uint64_t progress, Time now);

 private:
  static constexpr std::chrono::seconds period{1};
  std::string over() const;

  const WaitReports& reports_;
  std::chrono::milliseconds warn_after_;
  int rank_;
  std::string_view what_;
  Time next_;
  bool began_ = false, warned_ = false;
  Stillness stillness_;
  std::string key_;
};

}  // namespace troupe::progress
