// The client with the server of this repository, and with answers of others.
#include "launch/serve/http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "engine/base/text/text.h"
#include "tests/launch/http/certificate.h"
#include "tests/launch/http/test_server.h"

namespace troupe::launch::serve::http {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

serve::http::Client client_of(int port, const std::string& host = "127.0.0.1", bool tls = false) {
  return {serve::http::Url{tls, host, std::to_string(port), ""},
          "",
          {milliseconds(5000), milliseconds(5000)}};
}

TEST(Client, ReadsUrls) {
  const auto read = [](std::string_view text) {
    const auto url = serve::http::parse_url(text);
    return url ? cat(url->tls ? "tls " : "", url->host, " ", url->port, " ", url->path)
               : std::string("refused");
  };
  EXPECT_EQ(read("http://localhost:8000"), "localhost 8000 ");
  EXPECT_EQ(read("https://api.example.com/v1/"), "tls api.example.com 443 /v1");
  EXPECT_EQ(read("http://[::1]:80"), "::1 80 ");
  EXPECT_EQ(read("http://[::1]"), "::1 80 ");
  for (const char* text : {"localhost:8000", "ftp://a", "http://", "http://a:b", "http://a:",
                           "http://u@a", "http://a/x?y", "http://a\r\nb", "http://[::1"})
    EXPECT_EQ(read(text), "refused") << text;
}

TEST(Client, SendsABodyAndReadsTheResponse) {
  TestServer test;
  std::string big(1 << 20, 'x');
  const auto response =
      client_of(test.port()).send({.method = "POST", .path = "/echo", .body = big});
  ASSERT_TRUE(response) << response.error().what;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, big);
  EXPECT_EQ(client_of(test.port()).send({.path = "/nowhere"})->status, 404);
}

TEST(Client, AStreamArrivesInPieces) {
  TestServer test;
  std::string text;
  std::thread server([&] {
    auto responder = test.take_held();
    if (!responder) return;
    responder->begin_stream();
    responder->send_event("one");
    responder->send_event("two");
    responder->end_stream();
  });
  const auto response =
      client_of(test.port()).send({.path = "/stream"}, {.on_body = [&](std::string_view piece) {
                                    text += piece;
                                  }});
  server.join();
  ASSERT_TRUE(response) << response.error().what;
  EXPECT_EQ(response->body, "");
  EXPECT_EQ(text, "data: one\n\ndata: two\n\n");
}

TEST(Client, EveryWaitEnds) {
  TestServer test;
  const serve::http::Client hasty({false, "127.0.0.1", std::to_string(test.port()), ""}, "",
                                  {milliseconds(5000), milliseconds(200)});
  const auto late = hasty.send({.method = "POST", .path = "/hold"});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::timeout);
  EXPECT_THAT(late.error().what, HasSubstr("waiting for a response of 127.0.0.1"));
  const auto stopped =
      client_of(test.port()).send({.method = "POST", .path = "/hold"}, {.stop = [] {
                                    return true;
                                  }});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::cancelled);
}

TEST(Client, FailuresAreNamed) {
  int port = 0;
  {
    TestServer test;
    port = test.port();
    const serve::http::Client narrow({false, "127.0.0.1", std::to_string(port), ""}, "",
                                     {.body = 10});
    const auto full =
        narrow.send({.method = "POST", .path = "/echo", .body = "more than ten bytes"});
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, Errc::full) << full.error().what;
  }
  const auto refused = client_of(port).send({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::io);
  EXPECT_THAT(refused.error().what, HasSubstr("connecting to 127.0.0.1"));
}

TEST(Client, CertificatesAreVerified) {
  const Certificate certificate = make_certificate("client_test");
  serve::http::ServerOptions options;
  options.tls_cert = certificate.cert;
  options.tls_key = certificate.key;
  TestServer test(options);
  const auto unknown = client_of(test.port(), "localhost", true).send({.path = "/health"});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().what, HasSubstr("TLS with localhost"));
  ::setenv("SSL_CERT_FILE", certificate.cert.c_str(), 1);
  const auto trusted = client_of(test.port(), "localhost", true).send({.path = "/health"});
  const auto other_name = client_of(test.port(), "127.0.0.1", true).send({.path = "/health"});
  ::unsetenv("SSL_CERT_FILE");
  ASSERT_TRUE(trusted) << trusted.error().what;
  EXPECT_EQ(trusted->status, 200);
  EXPECT_FALSE(other_name) << "the certificate is that of localhost";
}

}  // namespace
}  // namespace troupe::launch::serve::http
