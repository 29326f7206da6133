// The message port: frames between nodes. Implementations: inproc/loopback (trivial),
// inproc/simulated (hostile). A transport may lose, delay, reorder or repeat frames; what is above
// it copes by deadlines, ids and duplicate windows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/error.h"
#include "transports/body.h"

namespace troupe::transports {

/// A mailbox: an actor on a node. An empty actor is the node itself (where replies go).
struct Address {
  std::string node, actor;
  bool operator==(const Address&) const = default;
};
/// "node/actor", or "node".
std::string to_string(const Address& address);

enum class Kind { request, reply, error };

/// One message. `id` is the asker's, unique over all incarnations of its node; an answer repeats
/// it.
struct Frame {
  Address to, from;
  std::uint64_t id = 0;
  Kind kind = Kind::request;
  std::string type;  ///< the message's name ("generate"); an answer repeats it
  Body body;         ///< request: the message; reply: its Reply (empty for void); error: an Error
  std::int64_t began = 0, ended = 0;  ///< of the handler, steady clock, nanoseconds; answers only
};

using Receiver = std::function<void(Frame)>;

class Transport {
 public:
  virtual ~Transport() = default;
  /// From now on frames to `node` go to `receive`, on any thread. Returns the node's incarnation:
  /// higher at each attach of the same transport. A name that is attached already is a Bug.
  virtual std::uint64_t attach(const std::string& node, Receiver receive) = 0;
  /// After it returns, `receive` is not called any more. Not to be called from inside `receive`.
  virtual void detach(const std::string& node) = 0;
  /// Never blocks. Success promises nothing; Errc::closed says that the node is known not to be
  /// there.
  virtual Result<> send(Frame frame) = 0;
};

}  // namespace troupe::transports
