// TlsContext: a certificate and its key, for the server's side of TLS.
#pragma once

#include <memory>
#include <string>

#include "engine/base/errors/error.h"

namespace boost::asio::ssl {
class context;
}

namespace troupe::launch::serve::http {

class TlsContext {
 public:
  /// Reads a chain of certificates and its key (PEM). TLS 1.2 and 1.3, without renegotiation and
  /// compression. Errc::io if a file cannot be read; Errc::usage if the key is readable by all
  /// users, or does not belong to the certificate, or a file is not PEM.
  static Result<std::shared_ptr<TlsContext>> read(const std::string& cert, const std::string& key);
  ~TlsContext();
  boost::asio::ssl::context& native() { return *context_; }

 private:
  TlsContext();
  std::unique_ptr<boost::asio::ssl::context> context_;
};

}  // namespace troupe::launch::serve::http
