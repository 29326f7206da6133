// HangWatch: a thread that warns of threads without progress and ends a process that hangs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace troupe::progress {

struct HangWatchOptions {
  std::string process;  ///< begins each warning: "rank 1: ", or ""
  std::chrono::milliseconds warn_after = std::chrono::seconds(20);
  /// A thread without progress for this time ends the process; absent: none does.
  std::optional<std::chrono::milliseconds> limit{};
  /// Prints the cause and ends the process; called on the watch's thread.
  std::function<void(const std::string& why)> end_process;
  std::chrono::milliseconds interval{250};  ///< between two looks
};

/// Warns once per hang, adds it to hangs(), and logs when the thread advances again. At most one at
/// a time.
class HangWatch {
 public:
  explicit HangWatch(HangWatchOptions options);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;

 private:
  friend void end_process_after(std::chrono::milliseconds, std::string);
  void run();
  bool ending();
  void end_when_late();

  const HangWatchOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::string cause_;
  std::optional<std::chrono::steady_clock::time_point> end_;
  std::thread thread_;
};

/// Has the HangWatch end the process with `why`, the first one given, unless it is destroyed within
/// `time`: a deadline has passed, and the handlers that should end may hang. Without a HangWatch,
/// does nothing.
void end_process_after(std::chrono::milliseconds time, std::string why);

}  // namespace troupe::progress
