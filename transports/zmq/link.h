// Link: one side of the connection between two processes, as a state machine over given time: what
// waits to be sent, how much the other side has room for, which asks it owes an answer, when it was
// heard last. It knows no socket and no thread.
//
// Credit: each side grants the other a window of frames and bytes and tells what it has consumed.
// What was offered and is not consumed yet fits the window, or offer() says Errc::full; nothing
// relies on ZeroMQ's high-water marks.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transports/wire/frame.h"

namespace troupe::transports {

using LinkTime = std::chrono::steady_clock::time_point;

struct Window {
  std::uint64_t frames = 0, bytes = 0;
};

class Link {
 public:
  enum class State { expected, joined, lost };

  /// `window`: what this side grants; as much is taken in for sending before the peer has granted
  /// its own.
  Link(std::string peer, Window window)
      : peer_(std::move(peer)), granted_(window), window_(window) {}

  /// Takes a message in for sending. Errc::full for a request beyond the window (one larger than it
  /// goes alone), Errc::closed for a peer that is gone. Answers are always taken: there are no more
  /// than were asked for.
  Result<> offer(const Frame& frame, wire::WireBody message);
  /// The next message that the window has room for.
  std::optional<wire::WireBody> next();
  bool idle() const { return waiting_.empty(); }

  /// The peer's hello. False when this link has had another session.
  bool join(std::uint64_t session, Window window, LinkTime now);
  /// What the peer has consumed in all. False when it says more than was sent, or less than before.
  bool consumed(Window totals);
  /// A message of the peer of this size was handed on. True when it is time to tell it so.
  bool received(std::size_t bytes);
  Window received_totals();
  void answered(std::uint64_t id) { owed_.erase(id); }
  void heard(LinkTime now) { heard_ = now; }
  bool silent_since(LinkTime when) const { return state_ == State::joined && heard_ < when; }

  /// For good. Returns an error frame for every ask that the peer owes an answer.
  std::vector<Frame> lose(const std::string& why);

  State state() const { return state_; }
  std::uint64_t session() const { return session_; }
  const std::string& peer() const { return peer_; }
  const std::string& why() const { return why_; }

 private:
  struct Waiting {
    wire::WireBody message;
    std::size_t bytes;
  };
  struct Owed {
    Address asker, asked;
    std::string type;
  };

  std::string peer_, why_;
  State state_ = State::expected;
  std::uint64_t session_ = 0;
  Window granted_, window_, offered_, sent_,
      consumed_;  // totals since the link began, but for the windows
  Window received_, told_;
  std::deque<Waiting> waiting_;
  std::map<std::uint64_t, Owed> owed_;
  LinkTime heard_{};
};

}  // namespace troupe::transports
