// Hub: the center of a star of processes, one node in each. It listens on its endpoints (ipc:// or
// tcp://127.0.0.1:*) and knows the public key of every spoke. CURVE encrypts and authenticates each
// connection; the key determines the sender of a frame. A lost connection is not re-established:
// its spoke is lost permanently. So the hub stops listening at ipc:// endpoints when all spokes are
// connected; before, the number of connections is limited (admission.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transports/zmq/keys.h"
#include "transports/zmq/link_options.h"
#include "transports/zmq/zmq_transport.h"

namespace troupe::transports {

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

 private:
  class Spokes;
  Hub(std::unique_ptr<Spokes> spokes, std::vector<std::string> endpoints);
  std::vector<std::string> endpoints_;
};

}  // namespace troupe::transports
