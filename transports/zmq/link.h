// Link: one side of the connection between two processes as a state machine: the send queue, the
// peer's credit, the asks the peer has not answered, and when it was last heard. It uses neither
// sockets nor threads; callers pass the time.
//
// Credit: each side grants the other a window of frames and bytes and reports what it has consumed.
// Unconsumed messages must fit the window, otherwise offer() returns Errc::full; ZeroMQ's
// high-water marks are not used.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transports/frame.h"

namespace troupe::transports {

using LinkTime = std::chrono::steady_clock::time_point;

struct Window {
  std::uint64_t frames = 0, bytes = 0;
};

/// The requests that a peer has not answered.
struct OpenRequests {
  std::size_t count = 0;
  std::string oldest;  ///< its type
  LinkTime since{};    ///< when it was offered
};

class Link {
 public:
  enum class State { expected, joined, lost };

  /// `window` is granted to the peer, and also limits the send queue until the peer grants its own.
  /// `keeps`: requests that a lost peer has not answered are kept for its successor, and so are
  /// those that are offered until it joins.
  Link(std::string peer, Window window, bool keeps = false)
      : peer_(std::move(peer)), keeps_(keeps), granted_(window), window_(window) {}

  /// Queues a message. Errc::full for a request beyond the window (a single larger one is sent
  /// alone), Errc::closed for a lost peer without `keeps`, and for a message to another incarnation
  /// of it. Replies are always accepted: the
  /// requests bound them.
  Result<> offer(const Frame& frame, wire::WireBody message, LinkTime now = {});
  /// Returns the next message if the window has room for it.
  std::optional<wire::WireBody> next();
  bool idle() const { return waiting_.empty(); }

  /// Handles the peer's hello. False when the link has already joined or was lost.
  bool join(std::uint64_t session, Window window, LinkTime now);
  /// Records the peer's consumed totals. False when they exceed what was sent or decrease.
  bool consumed(Window totals);
  /// Counts a delivered message of the peer. True when the peer should be granted new credit.
  bool received(std::size_t bytes);
  Window received_totals();
  void answered(std::uint64_t id) { unanswered_.erase(id); }
  void heard(LinkTime now) { heard_ = now; }
  bool silent_since(LinkTime when) const { return state_ == State::joined && heard_ < when; }

  /// Marks the peer as lost. Returns an error frame for every ask it has not answered, or none if
  /// they are kept.
  std::vector<Frame> lose(const std::string& why);
  /// A successor of the lost peer may join. Kept requests are queued for it in the order in which
  /// they were offered.
  void renew();

  State state() const { return state_; }
  std::uint64_t session() const { return session_; }
  OpenRequests open_requests() const;
  const std::string& peer() const { return peer_; }
  std::uint64_t incarnation() const { return incarnation_; }
  bool keeps() const { return keeps_; }
  const std::string& why() const { return why_; }

 private:
  struct Waiting {
    wire::WireBody message;
    std::size_t bytes;
  };
  struct Unanswered {
    Address asker, asked;
    std::string type;
    wire::WireBody message;  ///< if they are kept
    LinkTime since{};
  };

  std::string peer_, why_;
  bool keeps_ = false;
  std::uint64_t incarnation_ = 1;
  State state_ = State::expected;
  std::uint64_t session_ = 0;
  Window granted_, window_;           // granted to the peer, granted by the peer
  Window offered_, sent_, consumed_;  // totals of messages to the peer
  Window received_, reported_;        // totals of messages from the peer
  std::deque<Waiting> waiting_;
  std::map<std::uint64_t, Unanswered> unanswered_;
  LinkTime heard_{};
};

}  // namespace troupe::transports
