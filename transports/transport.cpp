#include "transports/transport.h"

namespace troupe::transports {

std::string to_string(const Address& address) {
  return address.actor.empty() ? address.node : address.node + "/" + address.actor;
}

}  // namespace troupe::transports
