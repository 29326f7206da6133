#include "actors/runtime/asker.h"

#include <chrono>
#include <utility>
#include <vector>

#include "actors/runtime/actor_ref.h"
#include "actors/runtime/detached.h"
#include "engine/base/errors/check.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"

namespace troupe::actors {

using transports::Body;
using transports::Frame;

std::shared_ptr<ReplyState> send_ask(Asker& asker, const transports::Address& to,
                                     std::string_view type, Body body, Duration deadline) {
  return asker.ask(to, type, std::move(body), deadline);
}

void forget(ReplyState& state) {
  if (const auto asker = state.asker.lock()) asker->forget(state.id);
}

namespace {

std::string seconds(Duration duration) {
  return to_text(std::chrono::duration<double>(duration).count()) + " s";
}

}  // namespace

std::shared_ptr<ReplyState> Asker::add(Duration deadline, Result<Body> at_deadline) {
  check(control_.inside(),
        "ask() and after() must be called by coroutines on the node's control executor; compute "
        "handlers cannot ask");
  check(deadline > Duration::zero() && deadline <= std::chrono::hours(24 * 30),
        "a deadline must be more than 0 and at most 30 days");
  auto state = std::make_shared<ReplyState>();
  if (ended_) {
    state->outcome = fail(*ended_);
    return state;
  }
  const std::uint64_t id = ++next_id_;
  state->id = id;
  state->asker = weak_from_this();
  const TimerId timer =
      control_.at(scheduler_.now() + deadline,
                  [weak = weak_from_this(), id, at_deadline = std::move(at_deadline)] {
                    if (const auto self = weak.lock()) self->finish(id, at_deadline);
                  });
  asks_.emplace(id, Ask{state, timer, nanoseconds(scheduler_.now())});
  return state;
}

std::shared_ptr<ReplyState> Asker::ask(const transports::Address& to, std::string_view type,
                                       Body body, Duration deadline) {
  std::string late =
      cat(to_string(to), " did not answer '", type, "' within ", seconds(deadline), " (asked by ",
          node_, "): it is busy, dead or unreachable; see its log, or use a longer deadline");
  auto state = add(deadline, fail(Errc::timeout, std::move(late)));
  if (state->outcome) return state;
  Frame frame{to,
              transports::Address{node_, ""},
              state->id,
              transports::Kind::request,
              std::string(type),
              std::move(body)};
  Result<> sent = transport_.send(std::move(frame));
  if (!sent) {
    const Error& why = sent.error();
    finish(state->id, fail(why.code, cat("'", type, "' could not be sent to ", to_string(to), ": ",
                                         why.what)));
  }
  return state;
}

std::shared_ptr<ReplyState> Asker::after(Duration delay) {
  return add(delay, Body());
}

bool Asker::answer(Frame frame) {
  const auto ask = asks_.find(frame.id);
  if (ask == asks_.end()) return false;
  notify_observer(frame, ask->second.asked);
  if (frame.kind == transports::Kind::reply) {
    finish(frame.id, std::move(frame.body));
  } else {
    Result<Error> error = frame.body.try_take<Error>();
    finish(frame.id, fail(error ? std::move(*error) : std::move(error.error())));
  }
  return true;
}

// The caller may be a detached coroutine, from which no exception may escape. An observer that
// throws only observes: it is not called again.
void Asker::notify_observer(const Frame& answer, std::int64_t asked) {
  if (!observer_) return;
  try {
    observer_({answer.from, answer.type, asked, answer.began, answer.ended,
               nanoseconds(scheduler_.now()), answer.kind == transports::Kind::error});
  } catch (...) {
    const CaughtException caught = caught_exception();
    observer_ = nullptr;
    log_warning(cat("calls are no longer recorded: ",
                    caught.failure ? caught.failure->what : caught.bug.value_or("")));
  }
}

void Asker::forget(std::uint64_t id) {
  const auto ask = asks_.find(id);
  if (ask == asks_.end()) return;
  check(control_.inside(), "a Reply must be destroyed on the control executor of its node");
  control_.cancel(ask->second.timer);
  asks_.erase(ask);
}

void Asker::finish(std::uint64_t id, Result<Body> outcome) {
  const auto ask = asks_.find(id);
  if (ask == asks_.end()) return;
  const std::shared_ptr<ReplyState> state = ask->second.state;
  control_.cancel(ask->second.timer);
  asks_.erase(ask);
  state->outcome = std::move(outcome);
  // Last, because the resumed coroutine may ask, forget, or end.
  if (const auto waiter = std::exchange(state->waiter, {})) waiter.resume();
}

void Asker::cancel_all(const Error& error) {
  ended_ = error;
  std::vector<std::uint64_t> ids;
  for (const auto& [id, ask] : asks_) ids.push_back(id);
  for (const std::uint64_t id : ids) finish(id, fail(error));
}

}  // namespace troupe::actors
