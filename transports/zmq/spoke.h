// Spoke: one process of a star. It communicates only with its hub (hub.h); each authenticates the
// other by its public key.
#pragma once

#include <memory>
#include <string>

#include "transports/transport.h"
#include "transports/zmq/keys.h"
#include "transports/zmq/link_options.h"
#include "transports/zmq/refusals.h"

namespace troupe::transports {

struct SpokeOptions {
  std::string name;  ///< name of the node in this process, as in HubOptions::spokes
  std::string hub;   ///< name of the hub's node
  std::string endpoint;
  KeyPair keys;
  std::string hub_public_key;
  LinkOptions link;
};

class Spoke final : public Transport {
 public:
  /// Errc::usage for invalid keys or an invalid endpoint. Sends nothing before open().
  static Result<std::unique_ptr<Spoke>> create(SpokeOptions options);
  /// Calls close().
  ~Spoke() override;
  Spoke(const Spoke&) = delete;

  /// Connects. Call it after attaching the node and spawning its actors: the hub may ask
  /// immediately.
  void open();
  /// Sends what is queued and a bye, then closes the sockets, within `linger`. Idempotent.
  void close();

  std::uint64_t attach(const std::string& node, Receiver receive) override;
  void detach(const std::string& node) override;
  /// Errc::full beyond the hub's window, Errc::closed when the hub is lost, Errc::unsupported when
  /// addressed to another spoke.
  Result<> send(Frame frame) override;

  const Refusals& refusals() const;

 private:
  class Core;
  explicit Spoke(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace troupe::transports
