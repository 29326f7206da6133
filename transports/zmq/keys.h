// Keys: the CURVE pair that proves who a process is. Made afresh for every launch and every child;
// never on a command line.
#pragma once

#include <string>

#include "engine/base/error.h"

namespace troupe::transports {

/// Both in Z85: 40 printable characters for 32 bytes.
struct KeyPair {
  std::string public_key, secret_key;
};
KeyPair new_keys();

/// The 32 bytes of a key. Errc::usage for a text that is none.
Result<std::string> decode_key(const std::string& key);

}  // namespace troupe::transports
