// A self-signed certificate for tests, made when it is needed.
#pragma once

#include <string>

namespace troupe::launch::serve::http {

struct Certificate {
  std::string cert, key;  ///< PEM files
};

/// Writes NAME.crt and NAME.key (mode 0600) into the folder of the test.
Certificate make_certificate(const std::string& name);

}  // namespace troupe::launch::serve::http
