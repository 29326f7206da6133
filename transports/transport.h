// Transport: the port that sends frames between nodes. Implementations: inproc/loopback (one
// process), zmq (processes); tests add simulated faults. A transport may lose,
// delay, reorder or repeat frames; deadlines, ids and duplicate windows above it handle that.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/errors/error.h"
#include "transports/body.h"

namespace troupe::transports {

/// Address of an actor's mailbox on a node. An empty actor is the node itself, which receives
/// replies.
struct Address {
  std::string node, actor;
  /// 0: whichever process has the node's place; otherwise only this one, counted from 1. A message
  /// to one that was lost is refused with Errc::closed. Stays with the sender.
  std::uint64_t incarnation = 0;
  bool operator==(const Address&) const = default;
};
/// "node/actor", or "node".
std::string to_string(const Address& address);

enum class Kind { request, reply, error };

/// One message. The asker chooses `id`, unique over all incarnations of its node; a reply repeats
/// it.
struct Frame {
  Address to, from;
  std::uint64_t id = 0;
  Kind kind = Kind::request;
  std::string type;  ///< the message's name ("generate"); a reply repeats it
  Body body;         ///< request: the message; reply: its Reply (empty for void); error: an Error
  std::int64_t began = 0, ended = 0;  ///< the handler's times, steady clock, ns; replies only
};

using Receiver = std::function<void(Frame)>;

class Transport {
 public:
  virtual ~Transport() = default;
  /// Delivers frames to `node` to `receive`, on any thread, from now on. Returns the node's
  /// incarnation, which increases with each attach() of the same transport. Throws Bug for a name
  /// that is already attached.
  virtual std::uint64_t attach(const std::string& node, Receiver receive) = 0;
  /// After it returns, `receive` is no longer called. Must not be called from inside `receive`.
  virtual void detach(const std::string& node) = 0;
  /// Never blocks. Success does not guarantee delivery; Errc::closed means that the node is known
  /// to be absent.
  virtual Result<> send(Frame frame) = 0;
};

}  // namespace troupe::transports
