// Asker: the table of a node's asks in flight, with their deadlines. Used only on the node's
// control executor.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "actors/runtime/ask_record.h"
#include "actors/runtime/reply.h"
#include "actors/runtime/scheduler.h"
#include "transports/transport.h"

namespace troupe::actors {

class Asker : public std::enable_shared_from_this<Asker> {
 public:
  Asker(std::string node, Scheduler& scheduler, Executor& control, transports::Transport& transport)
      : node_(std::move(node)), scheduler_(scheduler), control_(control), transport_(transport) {}

  /// Sets a callback for each reply to an ask in flight.
  void set_observer(std::function<void(const AskRecord&)> observer) {
    observer_ = std::move(observer);
  }
  void set_incarnation(std::uint64_t incarnation) { next_id_ = incarnation << 40; }

  /// Sends now. The state always gets an outcome by the deadline (more than 0, at most 30 days).
  std::shared_ptr<ReplyState> ask(const transports::Address& to, std::string_view type,
                                  transports::Body body, Duration deadline);
  /// A timer in the form of an ask: its reply arrives after `delay`.
  std::shared_ptr<ReplyState> after(Duration delay);
  /// Handles a frame of kind reply or error. False when no ask waits for it: it was forgotten, or
  /// the reply is late or a duplicate.
  bool answer(transports::Frame frame);
  bool expects(std::uint64_t id) const { return asks_.contains(id); }
  void forget(std::uint64_t id);
  /// Completes every ask in flight, and every later one, with this error.
  void cancel_all(const Error& error);
  std::size_t in_flight() const { return asks_.size(); }

 private:
  struct Ask {
    std::shared_ptr<ReplyState> state;
    TimerId timer;
    std::int64_t asked = 0;
  };
  void notify_observer(const transports::Frame& answer, std::int64_t asked);
  std::shared_ptr<ReplyState> add(Duration deadline, Result<transports::Body> at_deadline);
  void finish(std::uint64_t id, Result<transports::Body> outcome);

  std::string node_;
  Scheduler& scheduler_;
  Executor& control_;
  transports::Transport& transport_;
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, Ask> asks_;
  std::optional<Error> ended_;
  std::function<void(const AskRecord&)> observer_;
};

}  // namespace troupe::actors
