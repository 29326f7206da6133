// Connections that send nothing, or never a whole request, while an honest client must be served.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/text/text.h"
#include "launch/serve/http/listener.h"
#include "tests/launch/http/certificate.h"
#include "tests/launch/http/raw_client.h"
#include "tests/launch/http/test_server.h"

namespace troupe::launch::serve::http {
namespace {

using std::chrono::milliseconds;

const std::string key = "0123456789abcdef0123";
const std::string with_key = "Authorization: Bearer " + key + "\r\n";

serve::http::ApiKeys one_key() {
  const std::string path = testing::TempDir() + "connections_keys";
  std::filesystem::remove(path);
  std::ofstream(path) << "alice " << key;
  ::chmod(path.c_str(), 0600);
  return serve::http::ApiKeys::read(path).value();
}

struct Waiting {
  const char* name;
  std::string bytes;
  bool answered = false;  ///< the bytes are a request, after which the connection is kept
};

/// What connections without a request in progress may have sent.
std::vector<Waiting> waiting_forms() {
  const std::string head = cat("POST /echo HTTP/1.1\r\nHost: localhost\r\n", with_key);
  return {{"nothing", ""},
          {"one byte", "G"},
          {"half a header", "GET /health HTTP/1.1\r\nHost: local"},
          {"a header", head + "Content-Length: 5\r\n\r\n"},
          {"half a body", head + "Content-Length: 5\r\n\r\nab"},
          {"half a chunk", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nab"},
          {"a request before", get("/health"), true}};
}

// No deadline helps: they are longer than the test.
serve::http::ServerLimits few() {
  const milliseconds never(600'000);
  return {.connections = 64,
          .header_time = never,
          .body_time = never,
          .first_byte_time = never,
          .idle_time = never};
}

void expect_service_among(const Waiting& form, serve::http::ApiKeys keys) {
  TestServer test({.limits = few()}, std::move(keys));
  RawClient honest(test.port());  // one connection for all its requests
  std::vector<std::unique_ptr<RawClient>> held;
  for (int i = 0; i < 1000; ++i) {
    held.push_back(std::make_unique<RawClient>(test.port()));
    held.back()->send(form.bytes);
    if (form.answered) {
      ASSERT_TRUE(held.back()->response()) << form.name;
    }
    if (i % 25 != 0) continue;
    honest.send(post("/echo", "abc", with_key));
    auto response = honest.response();
    if (!response) {  // it was idle as well, and gave way: as any client it connects again
      honest = RawClient(test.port());
      honest.send(post("/echo", "abc", with_key));
      response = honest.response();
    }
    ASSERT_TRUE(response) << form.name << " " << i;
    ASSERT_EQ(response->status, 200) << form.name << " " << i;
  }
  EXPECT_TRUE(eventually([&] { return test.server->counts().gave_way >= 900; })) << form.name;
  EXPECT_EQ(test.server->counts().refused, 0u) << form.name;
  EXPECT_TRUE(eventually([&] { return test.server->counts().open <= 64; })) << form.name;
}

TEST(HttpConnections, ThoseWithoutARequestGiveWay) {
  for (const Waiting& form : waiting_forms()) {
    expect_service_among(form, {});
    expect_service_among(form, one_key());
  }
}

TEST(HttpConnections, ThoseWithARequestStay) {
  TestServer test({.limits = few()});
  std::vector<std::unique_ptr<RawClient>> busy;
  for (int i = 0; i < 64; ++i) {
    busy.push_back(std::make_unique<RawClient>(test.port()));
    busy.back()->send(post("/hold", ""));
    ASSERT_TRUE(eventually([&] { return test.server->counts().active == busy.size(); }));
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(RawClient(test.port()).response()->status, 503);
  EXPECT_EQ(test.server->counts().gave_way, 0u);
  for (const auto& client : busy) {
    test.take_held()->respond({.body = "held"});
    static_cast<void>(client);
  }
  for (const auto& client : busy) EXPECT_EQ(client->response()->body, "held");
}

TEST(HttpConnections, TheFirstByteHasAShortDeadline) {
  TestServer test({.limits = {.first_byte_time = milliseconds(200)}});
  RawClient silent(test.port()), kept(test.port());
  kept.send(get("/health"));
  ASSERT_TRUE(kept.response());
  EXPECT_EQ(silent.rest(milliseconds(5000)), "");
  kept.send(get("/health"));  // between requests the time is idle_time
  EXPECT_EQ(kept.response()->status, 200);
  EXPECT_EQ(serve::http::ServerLimits().first_byte_time, milliseconds(5000));
}

TEST(HttpConnections, OneAddressHasAShareBeyondLoopback) {
  const Certificate certificate = make_certificate("connections");
  const serve::http::ServerLimits limits{.connections_per_address = 3};
  TestServer open({.host = "0.0.0.0",
                   .tls_cert = certificate.cert,
                   .tls_key = certificate.key,
                   .limits = limits},
                  one_key());
  const auto connect = [](TestServer& test) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 5; ++i) clients.push_back(std::make_unique<RawClient>(test.port()));
    EXPECT_TRUE(eventually([&] { return test.server->counts().connections == 5; }));
    return clients;
  };
  {
    const auto clients = connect(open);
    EXPECT_TRUE(eventually([&] { return open.server->counts().refused == 2; }));
  }
  EXPECT_TRUE(eventually([&] { return open.server->counts().open == 0; }));
  // Where one address stands for all clients, it has no bound of its own.
  TestServer loopback({.limits = limits}, one_key());
  TestServer proxied({.host = "0.0.0.0", .behind_tls_proxy = true, .limits = limits}, one_key());
  for (TestServer* test : {&loopback, &proxied}) {
    const auto clients = connect(*test);
    for (const auto& client : clients) {
      client->send(get("/health"));
      EXPECT_EQ(client->response()->status, 200);
    }
  }
}

TEST(HttpConnections, BodiesThatArriveAreBoundedTogether) {
  serve::http::ServerLimits limits = few();
  limits.all_body_bytes = 1 << 20;
  TestServer test({.limits = limits});
  const std::string head =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400000\r\n\r\n";
  std::vector<std::unique_ptr<RawClient>> held;
  for (int i = 0; i < 2; ++i) {
    held.push_back(std::make_unique<RawClient>(test.port()));
    held.back()->send(head + std::string(399'999, 'a'));
  }
  RawClient small(test.port()), large(test.port());
  const auto two_are_held = [&] { return test.server->counts().body_bytes == 2 * 399'999; };
  ASSERT_TRUE(eventually(two_are_held));
  large.send(post("/echo", std::string(400'000, 'a')));
  const auto refused = large.response();
  ASSERT_TRUE(refused && refused->status == 503);
  EXPECT_EQ(refused->headers.at("retry-after"), "1");
  small.send(post("/echo", std::string(60'000, 'b')));
  EXPECT_EQ(small.response()->status, 200);
  ASSERT_TRUE(eventually(two_are_held)) << "what has been refused or answered does not count";
  held[0]->send("a");
  EXPECT_EQ(held[0]->response()->status, 200);
  held[0].reset();
  ASSERT_TRUE(eventually([&] {
    large = RawClient(test.port());
    large.send(post("/echo", std::string(400'000, 'a')));
    return large.response()->status == 200;
  })) << "what has been answered does not count";
}

std::string socket_folder(const std::string& name) {
  const std::string folder = testing::TempDir() + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(UnixSocket, IsOfThisUserOnly) {
  namespace fs = std::filesystem;
  const std::string folder = socket_folder("unix_mode"), path = folder + "/socket";
  const mode_t before = ::umask(0);
  auto first = serve::http::Listener::listen_unix(path);
  ::umask(before);
  ASSERT_TRUE(first);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_NE(serve::http::Listener::listen_unix(path).error().what.find("another server listens"),
            std::string::npos);
  first->close();
  EXPECT_FALSE(fs::exists(path));
}

TEST(UnixSocket, OfAServerThatHasEndedIsReplacedAndNothingElse) {
  namespace fs = std::filesystem;
  const std::string folder = socket_folder("unix_stale"), path = folder + "/socket";
  { const auto killed = serve::http::Listener::listen_unix(path).value(); }  // without close()
  ASSERT_TRUE(fs::exists(path));
  {
    const auto again = serve::http::Listener::listen_unix(path);
    EXPECT_TRUE(again);
  }
  fs::create_symlink(path, folder + "/link");
  std::ofstream(folder + "/file") << "kept";
  fs::create_symlink("nothing", folder + "/dangling");
  for (const char* name : {"/link", "/file", "/dangling", "/none/socket"}) {
    const auto refused = serve::http::Listener::listen_unix(folder + name);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, Errc::io) << name;
  }
  EXPECT_EQ(fs::file_size(folder + "/file"), 4u);
  EXPECT_TRUE(fs::exists(path)) << "a link to a stale socket was followed";
  for (const std::string& wrong : {std::string(), folder + "/" + std::string(108, 'a')})
    EXPECT_EQ(serve::http::Listener::listen_unix(wrong).error().code, Errc::usage);
}

}  // namespace
}  // namespace troupe::launch::serve::http
