// ActorState: an actor within its node: mailbox, handlers and whether it is alive. Used only on the
// control executor. Compute handlers run on the actor's engine executors, one at a time on each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/runtime/behavior.h"
#include "actors/runtime/scheduler.h"
#include "engine/base/errors/check.h"
#include "transports/transport.h"

namespace troupe::actors {

/// Messages waiting for one actor, in order of arrival. A full mailbox refuses messages; it never
/// blocks the thread that reads the transport.
class Mailbox {
 public:
  explicit Mailbox(std::size_t capacity) : capacity_(capacity) {
    check(capacity > 0, "a mailbox must hold at least one message");
  }
  /// False when it is full; the frame is then unchanged.
  bool push(transports::Frame& frame) {
    if (frames_.size() >= capacity_) return false;
    frames_.push_back(std::move(frame));
    return true;
  }
  std::optional<transports::Frame> pop() {
    if (frames_.empty()) return std::nullopt;
    std::optional<transports::Frame> first(std::move(frames_.front()));
    frames_.pop_front();
    return first;
  }
  std::size_t size() const { return frames_.size(); }
  std::size_t capacity() const { return capacity_; }

 private:
  std::size_t capacity_;
  std::deque<transports::Frame> frames_;
};

struct ActorState {
  std::string name;
  Behavior behavior;
  Executor* executor = nullptr;  ///< where the actor is destroyed
  std::vector<Executor*> idle;   ///< executors without a compute handler, the next one last
  Mailbox mailbox;
  std::size_t max_concurrency = 1;
  std::size_t running = 0;                  ///< handlers in progress, without ...
  std::size_t interrupting = 0;             ///< ... those of messages that interrupt others
  std::string handling;                     ///< type of the last message whose handler started
  std::optional<std::string> death_reason;  ///< set once the actor is dead
};

/// Outcome of a handler: the body of its reply, or an error, with a death reason when the handler
/// threw anything but Failure.
struct HandlerOutcome {
  Result<transports::Body> answer;
  std::optional<std::string> death_reason;
  std::int64_t began = 0, ended = 0;  ///< the handler's times by the scheduler's clock, ns
};

/// Returns the outcome of a handler of `who` ("main/policy") for message `type` that threw. Call it
/// inside a catch block.
HandlerOutcome failed_handler(const std::string& who, const std::string& type);

/// Errc::unsupported with the list of messages that the actor handles.
Error not_handled(const ActorState& actor, const std::string& who, const std::string& type);

}  // namespace troupe::actors
