#include "transports/zmq/link.h"

#include <utility>

#include "engine/base/text/text.h"

namespace troupe::transports {
namespace {

/// Whether a message of `bytes` fits the window together with those in flight. A single message
/// always fits.
bool fits(const Window& begun, const Window& done, std::size_t bytes, const Window& window) {
  const std::uint64_t frames = begun.frames - done.frames, size = begun.bytes - done.bytes;
  return frames == 0 || (frames < window.frames && size + bytes <= window.bytes);
}

void add(Window& totals, std::size_t bytes) {
  ++totals.frames;
  totals.bytes += bytes;
}

}  // namespace

Result<> Link::offer(const Frame& frame, wire::WireBody message, LinkTime now) {
  if (state_ == State::lost && (!keeps_ || frame.kind != Kind::request))
    return fail(Errc::closed, cat("node '", peer_, "' is gone: ", why_));
  if (frame.to.incarnation != 0 && frame.to.incarnation != incarnation_)
    return fail(Errc::closed, cat("node '", peer_, "' is gone: incarnation ", frame.to.incarnation,
                                  " was lost, and number ", incarnation_, " has its place"));
  const std::size_t bytes = wire::size_of(message);
  if (frame.kind == Kind::request) {
    if (!fits(offered_, consumed_, bytes, window_))
      return fail(Errc::full, cat("node '", peer_, "' has ", offered_.frames - consumed_.frames,
                                  " unconsumed messages of ", offered_.bytes - consumed_.bytes,
                                  " bytes; its window is ", window_.frames, " messages and ",
                                  window_.bytes, " bytes; send fewer requests at a time"));
    unanswered_.emplace(frame.id, Unanswered{frame.from, frame.to, frame.type,
                                             keeps_ ? message : wire::WireBody(), now});
  }
  add(offered_, bytes);
  waiting_.push_back({std::move(message), bytes});
  return {};
}

std::optional<wire::WireBody> Link::next() {
  if (state_ != State::joined || waiting_.empty() ||
      !fits(sent_, consumed_, waiting_.front().bytes, window_))
    return std::nullopt;
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  add(sent_, first.bytes);
  return std::move(first.message);
}

bool Link::join(std::uint64_t session, Window window, LinkTime now) {
  if (state_ != State::expected) return false;
  state_ = State::joined;
  session_ = session;
  window_ = window;
  heard_ = now;
  return true;
}

bool Link::consumed(Window totals) {
  if (totals.frames > sent_.frames || totals.bytes > sent_.bytes) return false;
  if (totals.frames < consumed_.frames || totals.bytes < consumed_.bytes) return false;
  consumed_ = totals;
  return true;
}

bool Link::received(std::size_t bytes) {
  add(received_, bytes);
  return received_.frames - reported_.frames >= (granted_.frames + 3) / 4 ||
         received_.bytes - reported_.bytes >= (granted_.bytes + 3) / 4;
}

Window Link::received_totals() {
  reported_ = received_;
  return reported_;
}

std::vector<Frame> Link::lose(const std::string& why) {
  if (state_ == State::lost) return {};
  state_ = State::lost;
  why_ = why;
  waiting_.clear();
  std::vector<Frame> errors;
  if (keeps_) return errors;
  for (auto& [id, ask] : std::exchange(unanswered_, {})) {
    Error error{Errc::closed, cat("'", ask.type, "' of ", to_string(ask.asked),
                                  " will not be answered: node '", peer_, "' is gone: ", why)};
    errors.push_back({ask.asker, ask.asked, id, Kind::error, ask.type, Body::of(std::move(error))});
  }
  return errors;
}

OpenRequests Link::open_requests() const {
  if (unanswered_.empty()) return {};
  const Unanswered& oldest = unanswered_.begin()->second;
  return {unanswered_.size(), oldest.type, oldest.since};
}

void Link::renew() {
  state_ = State::expected;
  ++incarnation_;
  why_.clear();
  window_ = granted_;
  offered_ = sent_ = consumed_ = received_ = reported_ = {};
  waiting_.clear();
  for (const auto& [id, ask] : unanswered_) {
    const std::size_t bytes = wire::size_of(ask.message);
    add(offered_, bytes);
    waiting_.push_back({ask.message, bytes});
  }
}

}  // namespace troupe::transports
