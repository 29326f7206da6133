#include "launch/serve/http/tls.h"

#include <sys/stat.h>

#include <boost/asio/ssl/context.hpp>
#include <cerrno>
#include <cstring>

#include "engine/base/text/text.h"

namespace troupe::launch::serve::http {

namespace ssl = boost::asio::ssl;

namespace {

Result<> check_key_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return fail(errno == ENOENT ? Errc::not_found : Errc::io,
                cat(path, ": cannot read the TLS key: ", std::strerror(errno)));
  if ((info.st_mode & 07) != 0)
    return fail(Errc::usage,
                cat(path, ": all users can access the TLS key; run `chmod 600 ", path, "`"));
  return {};
}

}  // namespace

TlsContext::TlsContext() : context_(std::make_unique<ssl::context>(ssl::context::tls_server)) {
}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::read(const std::string& cert,
                                                     const std::string& key) {
  RETURN_IF_ERROR(check_key_file(key));
  std::shared_ptr<TlsContext> made(new TlsContext());
  SSL_CTX* native = made->context_->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  boost::system::error_code failed;
  made->context_->use_certificate_chain_file(cert, failed);
  if (failed)
    return fail(Errc::usage, cat(cert, ": not a PEM file of certificates: ", failed.message()));
  made->context_->use_private_key_file(key, ssl::context::pem, failed);
  if (failed)
    return fail(Errc::usage,
                cat(key, ": not the PEM key of the certificate in ", cert, ": ", failed.message()));
  return made;
}

}  // namespace troupe::launch::serve::http
