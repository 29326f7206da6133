// Asio provides the event loop; only this file and the scheduler include it.
#include "actors/runtime/process_events.h"

#define ASIO_STANDALONE
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <utility>

namespace troupe::actors {

struct ProcessEvents::Loop {
  asio::io_context context;
  asio::steady_timer timer{context};
};

ProcessEvents::ProcessEvents() : loop_(std::make_unique<Loop>()) {
}

ProcessEvents::~ProcessEvents() = default;

std::vector<bool> ProcessEvents::wait(std::span<const WatchedDescriptor> descriptors, Time until) {
  auto& [context, timer] = *loop_;
  context.restart();
  std::vector<bool> ready(descriptors.size());
  timer.expires_at(until);
  timer.async_wait([](const asio::error_code&) {});
  std::deque<asio::posix::stream_descriptor> watched;
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    if (descriptors[i].fd < 0) continue;
    watched.emplace_back(context, descriptors[i].fd)
        .async_wait(descriptors[i].writable ? asio::posix::descriptor_base::wait_write
                                            : asio::posix::descriptor_base::wait_read,
                    [&ready, i](const asio::error_code& failed) { ready[i] = !failed; });
  }
  context.run_one();  // the deadline, wake() or a descriptor
  context.poll();     // what is ready as well
  timer.cancel();
  for (auto& each : watched) each.release();  // their owners close them
  context.poll();                             // the cancelled handlers
  return ready;
}

void ProcessEvents::wake() {
  post([] {});
}

void ProcessEvents::post(std::function<void()> work) {
  asio::post(loop_->context, std::move(work));
}

}  // namespace troupe::actors
