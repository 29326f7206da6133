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

Result<> Link::offer(const Frame& frame, wire::WireBody message) {
  if (state_ == State::lost) return fail(Errc::closed, cat("node '", peer_, "' is gone: ", why_));
  const std::size_t bytes = wire::size_of(message);
  if (frame.kind == Kind::request) {
    if (!fits(offered_, consumed_, bytes, window_))
      return fail(Errc::full, cat("node '", peer_, "' has ", offered_.frames - consumed_.frames,
                                  " unconsumed messages of ", offered_.bytes - consumed_.bytes,
                                  " bytes; its window is ", window_.frames, " messages and ",
                                  window_.bytes, " bytes; send fewer requests at a time"));
    unanswered_.emplace(frame.id, Unanswered{frame.from, frame.to, frame.type});
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
  for (auto& [id, ask] : std::exchange(unanswered_, {})) {
    Error error{Errc::closed, cat("'", ask.type, "' of ", to_string(ask.asked),
                                  " will not be answered: node '", peer_, "' is gone: ", why)};
    errors.push_back({ask.asker, ask.asked, id, Kind::error, ask.type, Body::of(std::move(error))});
  }
  return errors;
}

}  // namespace troupe::transports
