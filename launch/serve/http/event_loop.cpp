#include "launch/serve/http/event_loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "engine/base/files/environment_error.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/thread_with_blocked_signals.h"

namespace troupe::launch::serve::http {

namespace asio = boost::asio;

struct EventLoop::Impl {
  struct Timer {
    asio::steady_timer timer;
    std::chrono::milliseconds period;
    std::function<void()> work;
  };
  struct Watch {
    asio::posix::stream_descriptor descriptor;
    std::function<bool()> work;
  };

  void arm(Timer& timer) {
    timer.timer.expires_after(timer.period);
    timer.timer.async_wait([this, &timer](const boost::system::error_code& failed) {
      if (failed || stopping) return;
      contain(timer.work);
      arm(timer);
    });
  }

  void arm(Watch& watch) {
    watch.descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                [this, &watch](const boost::system::error_code& failed) {
                                  if (failed || stopping) return;
                                  if (watch.work()) arm(watch);
                                });
  }

  /// What one call lacks, usually memory, ends neither the thread nor what is called periodically.
  static void contain(const std::function<void()>& work) {
    try {
      work();
    } catch (const std::exception& error) {
      const auto outside = environment_error(error);
      log_error(cat("the HTTP server: ", outside ? outside->what : error.what()));
    }
  }

  void run() {
    // run() can be called again after an exception of a handler.
    while (!context.stopped()) contain([this] { context.run(); });
  }

  asio::io_context context{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> guard{
      asio::make_work_guard(context)};
  bool stopping = false;  // of the loop's thread
  // References to elements stay valid.
  std::deque<Timer> timers;
  std::deque<Watch> watches;
  std::thread thread;
};

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {
  // Asio opens its descriptors with the first timer or socket, which would be on the thread.
  try {
    const asio::steady_timer timer(impl_->context);
    const asio::posix::stream_descriptor descriptor(impl_->context);
  } catch (const boost::system::system_error& error) {
    throw Failure(os_error(error.code().value(), "cannot start an event loop of the server"));
  }
}
EventLoop::~EventLoop() {
  stop();
}

void EventLoop::start(const std::string& name) {
  impl_->thread = thread_with_blocked_signals(name, [this] { impl_->run(); });
}

void EventLoop::stop() {
  if (!impl_->thread.joinable()) return;
  post([this] {
    impl_->stopping = true;
    for (Impl::Timer& timer : impl_->timers) timer.timer.cancel();
    for (Impl::Watch& watch : impl_->watches) watch.descriptor.release();
    impl_->guard.reset();
  });
  impl_->thread.join();
}

void EventLoop::post(std::function<void()> work) {
  asio::post(impl_->context, std::move(work));
}

void EventLoop::every(std::chrono::milliseconds period, std::function<void()> work) {
  post([this, period, work = std::move(work)] {
    impl_->timers.push_back({asio::steady_timer(impl_->context), period, work});
    impl_->arm(impl_->timers.back());
  });
}

void EventLoop::when_readable(int descriptor, std::function<bool()> work) {
  post([this, descriptor, work = std::move(work)] {
    impl_->watches.push_back({asio::posix::stream_descriptor(impl_->context, descriptor), work});
    impl_->arm(impl_->watches.back());
  });
}

asio::io_context& EventLoop::context() {
  return impl_->context;
}

}  // namespace troupe::launch::serve::http
