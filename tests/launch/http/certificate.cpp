#include "tests/launch/http/certificate.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>

namespace troupe::launch::serve::http {

Certificate make_certificate(const std::string& name) {
  const Certificate made{testing::TempDir() + name + ".crt", testing::TempDir() + name + ".key"};
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* cert = X509_new();
  X509_set_version(cert, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
  X509_gmtime_adj(X509_getm_notBefore(cert), 0);
  X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
  X509_NAME* subject = X509_get_subject_name(cert);
  const std::string host = "localhost";
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(host.c_str()), -1, -1, 0);
  X509_set_issuer_name(cert, subject);
  X509_set_pubkey(cert, key);
  X509_sign(cert, key, EVP_sha256());
  std::FILE* file = std::fopen(made.cert.c_str(), "w");
  PEM_write_X509(file, cert);
  std::fclose(file);
  file = std::fopen(made.key.c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  ::chmod(made.key.c_str(), 0600);
  X509_free(cert);
  EVP_PKEY_free(key);
  return made;
}

}  // namespace troupe::launch::serve::http
