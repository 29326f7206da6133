// TLS: a client of OpenSSL, versions, and what is not TLS.
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "engine/base/text/text.h"
#include "tests/launch/http/certificate.h"
#include "tests/launch/http/raw_client.h"
#include "tests/launch/http/test_server.h"

namespace troupe::launch::serve::http {
namespace {

using std::chrono::milliseconds;

/// One connection of OpenSSL that trusts `cert` only.
class TlsClient {
 public:
  TlsClient(int port, const std::string& cert, int max_version = TLS1_3_VERSION)
      : socket_(port), context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free) {
    SSL_CTX_load_verify_locations(context_.get(), cert.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_max_proto_version(context_.get(), max_version);
    tls_ = {SSL_new(context_.get()), &SSL_free};
    SSL_set_fd(tls_.get(), socket_.descriptor());
    connected_ = SSL_connect(tls_.get()) == 1;
  }
  bool connected() const { return connected_; }
  SSL* tls() { return tls_.get(); }
  std::string exchange(const std::string& request, const std::string& until) {
    SSL_write(tls_.get(), request.data(), static_cast<int>(request.size()));
    std::string text;
    std::array<char, 4096> buffer;
    while (text.find(until) == std::string::npos) {
      const int count = SSL_read(tls_.get(), buffer.data(), static_cast<int>(buffer.size()));
      if (count <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  RawClient socket_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, &SSL_free};
  bool connected_ = false;
};

serve::http::ServerOptions options_of(const Certificate& certificate) {
  return {.tls_cert = certificate.cert,
          .tls_key = certificate.key,
          .limits = {.header_time = milliseconds(300)}};
}

TEST(HttpTls, ServesClientsOfTls13And12) {
  const Certificate certificate = make_certificate("good");
  TestServer test(options_of(certificate));
  EXPECT_TRUE(test.server->url().starts_with("https://127.0.0.1:"));
  for (const int version : {TLS1_3_VERSION, TLS1_2_VERSION}) {
    TlsClient client(test.port(), certificate.cert, version);
    ASSERT_TRUE(client.connected());
    EXPECT_EQ(SSL_version(client.tls()), version);
    for (int i = 0; i < 3; ++i)
      EXPECT_NE(client.exchange(post("/echo", "secret"), "secret").find("200 OK"),
                std::string::npos);
    const std::string last = client.exchange(get("/health", "Connection: close\r\n"), "no end");
    EXPECT_TRUE(last.ends_with("ok"));
    // The end of the stream is authenticated, so that a cut response is noticed.
    EXPECT_EQ(SSL_get_shutdown(client.tls()) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
  }
  EXPECT_FALSE(TlsClient(test.port(), certificate.cert, TLS1_1_VERSION).connected());
}

TEST(HttpTls, ServesLargeBodies) {
  const Certificate certificate = make_certificate("good");
  TestServer test(options_of(certificate));
  TlsClient client(test.port(), certificate.cert);
  const std::string body = std::string(1 << 20, 'x') + "end";
  EXPECT_TRUE(client.exchange(post("/echo", body), "xend").ends_with(body));
}

TEST(HttpTls, SurvivesWhatIsNotTls) {
  const Certificate certificate = make_certificate("good");
  TestServer test(options_of(certificate));
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), std::string(1000, '\0'),
        std::string("\x16\x03\x01\xff\xff") + std::string(1000, 'a'),
        std::string("\x16\x03\x01")}) {
    RawClient client(test.port());
    client.send(bytes);
    EXPECT_TRUE(client.rest(milliseconds(3000))) << "a connection that stays open";
  }
  EXPECT_EQ(test.server->counts().requests, 0u);
  TlsClient client(test.port(), certificate.cert);
  EXPECT_NE(client.exchange(get("/health"), "ok").find("200 OK"), std::string::npos);
}

TEST(HttpTls, RefusesUnusableFiles) {
  const Certificate good = make_certificate("good"), other = make_certificate("other");
  const auto code = [](const Certificate& certificate) {
    const auto started = serve::http::Server::start(options_of(certificate), serve::http::Router(),
                                                    serve::http::ApiKeys(), nullptr);
    return started ? Errc::internal : started.error().code;
  };
  EXPECT_EQ(code({good.cert, other.key}), Errc::usage);
  EXPECT_EQ(code({good.key, good.key}), Errc::usage);
  EXPECT_EQ(code({good.cert, ""}), Errc::usage);
  EXPECT_EQ(code({good.cert, good.key + ".none"}), Errc::not_found);
  ::chmod(good.key.c_str(), 0644);
  EXPECT_EQ(code(good), Errc::usage);
}

}  // namespace
}  // namespace troupe::launch::serve::http
