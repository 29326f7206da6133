// ZapHandler: authenticates connections by ZAP 1.0 (rfc.zeromq.org/spec/27). ZeroMQ asks it about
// every CURVE handshake of its context. It accepts the listed public keys and names their nodes,
// and refuses all others.
#pragma once

#include <map>
#include <string>
#include <zmq.hpp>

#include "transports/zmq/refusals.h"

namespace troupe::transports {

class ZapHandler {
 public:
  /// `nodes`: public key (32 bytes) -> node name. `refusals` outlives this.
  ZapHandler(zmq::context_t& context, std::map<std::string, std::string> nodes, Refusals& refusals);
  zmq::socket_t& socket() { return socket_; }
  /// Answers all pending requests.
  void handle_requests();

 private:
  zmq::socket_t socket_;
  std::map<std::string, std::string> nodes_;
  Refusals& refusals_;
};

}  // namespace troupe::transports
