// Spoke: one process of a star. It communicates only with its hub (hub.h); each authenticates the
// other by its public key.
#pragma once

#include <memory>
#include <string>

#include "transports/zmq/keys.h"
#include "transports/zmq/link_options.h"
#include "transports/zmq/zmq_transport.h"

namespace troupe::transports {

struct SpokeOptions {
  std::string name;  ///< name of the node in this process, as in HubOptions::spokes
  std::string hub;   ///< name of the hub's node
  std::string endpoint;
  KeyPair keys;
  std::string hub_public_key;
  LinkOptions link;
};

/// open() connects. send() fails with Errc::unsupported when addressed to another spoke.
class Spoke final : public ZmqTransport {
 public:
  /// Errc::usage for invalid keys or an invalid endpoint. Sends nothing before open().
  static Result<std::unique_ptr<Spoke>> create(SpokeOptions options);

 private:
  class HubLink;
  explicit Spoke(std::unique_ptr<HubLink> hub);
};

}  // namespace troupe::transports
