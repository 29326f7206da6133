// EventLoop: a thread that waits for sockets and timers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace boost::asio {
class io_context;
}

namespace troupe::launch::serve::http {

class EventLoop {
 public:
  /// Throws Failure if the system has no descriptors or memory for it.
  EventLoop();
  ~EventLoop();  ///< calls stop()
  EventLoop(const EventLoop&) = delete;

  /// Starts the thread.
  void start(const std::string& name);
  /// Ends the thread when what is in progress has ended; periodic calls and waits end now.
  void stop();

  /// Calls `work` on the loop's thread, not from within this call. From any thread.
  void post(std::function<void()> work);
  /// Calls `work` on the loop's thread every `period`, until stop().
  void every(std::chrono::milliseconds period, std::function<void()> work);
  /// Calls `work` whenever the descriptor is readable, until it returns false, or stop(). The
  /// descriptor stays open as long as the loop runs.
  void when_readable(int descriptor, std::function<bool()> work);

  boost::asio::io_context& context();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::launch::serve::http
