// Hub: the center of a star of processes, one node in each. It listens on its endpoints (ipc:// or
// tcp://127.0.0.1:*) and knows the public key of every spoke. CURVE encrypts and authenticates each
// connection; the key determines the sender of a frame. A lost connection is not re-established:
// its spoke is lost permanently.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transports/transport.h"
#include "transports/zmq/keys.h"
#include "transports/zmq/link_options.h"
#include "transports/zmq/refusals.h"

namespace troupe::transports {

struct HubOptions {
  std::string name;                    ///< name of the node in this process
  std::vector<std::string> endpoints;  ///< "ipc:///path", "tcp://127.0.0.1:*"
  KeyPair keys;
  std::map<std::string, std::string> spokes;  ///< public key -> node name
  LinkOptions link;
};

class Hub final : public Transport {
 public:
  /// Binds the endpoints. Errc::usage for invalid keys, Errc::io for an endpoint that cannot be
  /// bound.
  static Result<std::unique_ptr<Hub>> bind(HubOptions options);
  /// Calls close().
  ~Hub() override;
  Hub(const Hub&) = delete;

  /// The bound endpoints: "tcp://127.0.0.1:40123" for "tcp://127.0.0.1:*".
  const std::vector<std::string>& endpoints() const;
  /// Starts to accept spokes. Call it after attaching the node and spawning its actors.
  void open();
  /// Sends what is queued and a bye, then closes the sockets, within `linger`. Idempotent.
  void close();

  std::uint64_t attach(const std::string& node, Receiver receive) override;
  void detach(const std::string& node) override;
  /// Errc::full beyond the spoke's window, Errc::closed for a spoke that is lost or unknown.
  Result<> send(Frame frame) override;

  const Refusals& refusals() const;

 private:
  class Core;
  explicit Hub(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace troupe::transports
