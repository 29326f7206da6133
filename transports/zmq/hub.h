// Hub: the center of a star of processes, one node in each. It listens on its endpoints (ipc:// or
// tcp://127.0.0.1:*) and knows the public key of every spoke. CURVE encrypts and authenticates each
// connection; the key determines the sender of a frame. A lost connection is not re-established:
// the process behind it is lost. Another one may take its place under a key of its own, as the next
// incarnation of the node; what the former one still sends is refused (Refusal::fenced), and
// answered with that. The hub listens at ipc:// endpoints only while a spoke is expected, and the
// number of connections is limited then (admission.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transports/zmq/keys.h"
#include "transports/zmq/link_options.h"
#include "transports/zmq/zmq_transport.h"

namespace troupe::transports {

class PeerTransport;

struct HubOptions {
  std::string name;                    ///< name of the node in this process
  std::vector<std::string> endpoints;  ///< "ipc:///path", "tcp://127.0.0.1:*"
  KeyPair keys;
  std::map<std::string, std::string> spokes;  ///< public key -> node name
  LinkOptions link;
};

/// send() fails with Errc::closed for an unknown spoke.
class Hub final : public ZmqTransport {
 public:
  /// Binds the endpoints. Errc::usage for invalid keys, Errc::io for an endpoint that cannot be
  /// bound.
  static Result<std::unique_ptr<Hub>> bind(HubOptions options);
  /// The bound endpoints: "tcp://127.0.0.1:40123" for "tcp://127.0.0.1:*".
  const std::vector<std::string>& endpoints() const { return endpoints_; }
  /// Of a spoke. From any thread.
  OpenRequests open_requests(const std::string& node) const;
  /// A process with this key may join as the next incarnation of `node`; the present one is lost,
  /// if it is not yet, for the reason `why`. From any thread. Errc::usage for an invalid key,
  /// Errc::closed for an unknown node.
  Result<> replace(const std::string& node, const std::string& public_key, const std::string& why);

 private:
  class Spokes;
  Hub(Spokes& shared, std::unique_ptr<PeerTransport> owned, std::vector<std::string> endpoints);
  Spokes& spokes_;
  std::vector<std::string> endpoints_;
};

}  // namespace troupe::transports
