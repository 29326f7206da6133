// Zap: who may connect. ZeroMQ asks it (ZAP 1.0, rfc.zeromq.org/spec/27) about every CURVE
// handshake of its context: a public key on the list is let in as the node that has it, any other
// is refused.
#pragma once

#include <map>
#include <string>
#include <zmq.hpp>

#include "transports/zmq/refusals.h"

namespace troupe::transports {

class Zap {
 public:
  /// `nodes`: the 32 bytes of a public key -> the node's name. `refusals` outlives this.
  Zap(zmq::context_t& context, std::map<std::string, std::string> nodes, Refusals& refusals);
  zmq::socket_t& socket() { return socket_; }
  /// Answers the questions that have come in.
  void answer();

 private:
  zmq::socket_t socket_;
  std::map<std::string, std::string> nodes_;
  Refusals& refusals_;
};

}  // namespace troupe::transports
