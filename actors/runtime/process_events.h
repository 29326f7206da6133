// ProcessEvents: what a thread with child processes waits for: output in their pipes, room in their
// inputs, their exits (pidfds), a deadline, and other threads.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace troupe::actors {

/// A pipe or a pidfd. It becomes ready also when the other end of the pipe is closed.
struct WatchedDescriptor {
  int fd = -1;            ///< -1: never ready
  bool writable = false;  ///< wait until it can be written to, otherwise until it can be read
};

class ProcessEvents {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Throws std::system_error if there are no more descriptors (environment_error.h).
  ProcessEvents();
  ~ProcessEvents();
  ProcessEvents(const ProcessEvents&) = delete;

  /// Waits until a descriptor is ready, wake() was called, or `until` has come. Returns which
  /// descriptors are ready, in their order. They become non-blocking.
  std::vector<bool> wait(std::span<const WatchedDescriptor> descriptors, Time until = Time::max());
  /// Ends the present wait, otherwise the next one. From any thread.
  void wake();
  /// Runs `work` on the thread that waits, within the wait that it ends as wake() does. From any
  /// thread.
  void post(std::function<void()> work);

 private:
  struct Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace troupe::actors
