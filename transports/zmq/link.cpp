#include "transports/zmq/link.h"

#include <utility>

#include "engine/base/text.h"

namespace troupe::transports {
namespace {

/// Whether one more message of `bytes` fits beside what is under way; alone, any does.
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
                                  " messages of ", offered_.bytes - consumed_.bytes,
                                  " bytes to take yet; it grants ", window_.frames, " and ",
                                  window_.bytes, " bytes; ask it less at once"));
    owed_.emplace(frame.id, Owed{frame.from, frame.to, frame.type});
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
  return received_.frames - told_.frames >= (granted_.frames + 3) / 4 ||
         received_.bytes - told_.bytes >= (granted_.bytes + 3) / 4;
}

Window Link::received_totals() {
  return told_ = received_;
}

std::vector<Frame> Link::lose(const std::string& why) {
  if (state_ == State::lost) return {};
  state_ = State::lost;
  why_ = why;
  waiting_.clear();
  std::vector<Frame> errors;
  for (auto& [id, owed] : std::exchange(owed_, {})) {
    Error error{Errc::closed, cat("'", owed.type, "' of ", to_string(owed.asked),
                                  " will not be answered: node '", peer_, "' is gone: ", why)};
    errors.push_back(
        {owed.asker, owed.asked, id, Kind::error, owed.type, Body::of(std::move(error))});
  }
  return errors;
}

}  // namespace troupe::transports
