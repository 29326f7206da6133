#include "transports/zmq/keys.h"

#include <zmq.h>

#include <array>

#include "engine/base/text/text.h"

namespace troupe::transports {

KeyPair new_keys() {
  std::array<char, 41> open{}, secret{};
  if (zmq_curve_keypair(open.data(), secret.data()) != 0)
    throw Failure({Errc::unsupported, "the ZeroMQ library was built without CURVE"});
  return {open.data(), secret.data()};
}

Result<std::string> decode_key(const std::string& key) {
  std::array<unsigned char, 32> bytes{};
  if (key.size() != 40 || zmq_z85_decode(bytes.data(), key.c_str()) == nullptr)
    return fail(Errc::usage, cat("expected a CURVE key of 40 Z85 characters, found ", key.size(),
                                 " characters"));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace troupe::transports
