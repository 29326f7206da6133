// Spoke: one process of a star. It talks to its hub only (hub.h), with a key of its own, and knows
// the hub by the hub's key.
#pragma once

#include <memory>
#include <string>

#include "transports/transport.h"
#include "transports/zmq/keys.h"
#include "transports/zmq/link_options.h"
#include "transports/zmq/refusals.h"

namespace troupe::transports {

struct SpokeOptions {
  std::string name;  ///< of the one node that lives here, as the hub's list has it
  std::string hub;   ///< the hub's node
  std::string endpoint;
  KeyPair keys;
  std::string hub_public_key;
  LinkOptions link;
};

class Spoke final : public Transport {
 public:
  /// Errc::usage for keys or an endpoint that are none. Nothing is sent before open().
  static Result<std::unique_ptr<Spoke>> create(SpokeOptions options);
  /// close()
  ~Spoke() override;
  Spoke(const Spoke&) = delete;

  /// Connects. After the node was attached and its actors spawned, for the hub may ask at once.
  void open();
  /// Sends what is queued, says goodbye, ends. Within `linger`; once.
  void close();

  std::uint64_t attach(const std::string& node, Receiver receive) override;
  void detach(const std::string& node) override;
  /// Errc::full beyond the hub's window, Errc::closed when the hub is lost, Errc::unsupported for
  /// another spoke.
  Result<> send(Frame frame) override;

  const Refusals& refusals() const;

 private:
  class Core;
  explicit Spoke(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace troupe::transports
