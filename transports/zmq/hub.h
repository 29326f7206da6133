// Hub: the middle of a star of processes, one node in each. It is bound to its endpoints (ipc:// or
// tcp://127.0.0.1:*) and knows every spoke by its public key; each connection is encrypted and
// authenticated by CURVE, and a frame's sender is whom the key says it is. A connection that is
// lost is not taken up again: its spoke is lost for good.
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
  std::string name;                    ///< of the one node that lives here
  std::vector<std::string> endpoints;  ///< "ipc:///path", "tcp://127.0.0.1:*"
  KeyPair keys;
  std::map<std::string, std::string> spokes;  ///< public key -> the name of the node that has it
  LinkOptions link;
};

class Hub final : public Transport {
 public:
  /// Binds. Errc::usage for keys that are none, Errc::io for an endpoint that cannot be bound.
  static Result<std::unique_ptr<Hub>> bind(HubOptions options);
  /// close()
  ~Hub() override;
  Hub(const Hub&) = delete;

  /// As bound: "tcp://127.0.0.1:40123" for "tcp://127.0.0.1:*".
  const std::vector<std::string>& endpoints() const;
  /// Begins to let spokes in. After the node was attached and its actors spawned.
  void open();
  /// Sends what is queued, says goodbye, ends. Within `linger`; once.
  void close();

  std::uint64_t attach(const std::string& node, Receiver receive) override;
  void detach(const std::string& node) override;
  /// Errc::full beyond the spoke's window, Errc::closed for a spoke that is lost or not on the
  /// list.
  Result<> send(Frame frame) override;

  const Refusals& refusals() const;

 private:
  class Core;
  explicit Hub(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace troupe::transports
