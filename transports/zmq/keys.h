// Keys: CURVE key pairs that authenticate processes. Every launch and every child gets a new pair,
// which never appears on a command line.
#pragma once

#include <string>

#include "engine/base/errors/error.h"

namespace troupe::transports {

/// A key pair in Z85: 40 printable characters for 32 bytes.
struct KeyPair {
  std::string public_key, secret_key;
};
KeyPair new_keys();

/// Decodes a key to its 32 bytes. Errc::usage for an invalid key.
Result<std::string> decode_key(const std::string& key);

}  // namespace troupe::transports
