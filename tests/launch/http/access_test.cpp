// API keys, the rules for listening beyond loopback, and the access log.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "tests/launch/http/raw_client.h"
#include "tests/launch/http/test_server.h"

namespace troupe::launch::serve::http {
namespace {

const std::string first_key = "0123456789abcdef0123", second_key = "fedcba9876543210fedc";

std::string key_file(const std::string& text, mode_t mode = 0600) {
  const std::string path = testing::TempDir() + "keys";
  std::filesystem::remove(path);
  std::ofstream(path) << text;
  ::chmod(path.c_str(), mode);
  return path;
}

serve::http::ApiKeys two_keys() {
  return serve::http::ApiKeys::read(
             key_file(cat("# comment\n\nalice ", first_key, "\n", second_key, "\r\n")))
      .value();
}

TEST(ApiKeys, ReadsNamesAndKeys) {
  const serve::http::ApiKeys keys = two_keys();
  EXPECT_EQ(keys.name_of("Bearer " + first_key), "alice");
  EXPECT_EQ(keys.name_of("bearer " + second_key), "key4");
  for (const std::string& wrong : std::vector<std::string>{
           "", "Bearer", "Bearer ", "Basic " + first_key, first_key, "Bearer " + first_key + "x",
           "Bearer  " + first_key, "Bearer " + first_key.substr(1), "Bearer alice " + first_key})
    EXPECT_FALSE(keys.name_of(wrong)) << wrong;
}

TEST(ApiKeys, RefusesFilesThatOthersCanRead) {
  for (const mode_t mode : {0640, 0604, 0644, 0660, 0700}) {
    const auto keys = serve::http::ApiKeys::read(key_file(first_key, mode));
    ASSERT_FALSE(keys) << mode;
    EXPECT_EQ(keys.error().code, Errc::usage);
    EXPECT_NE(keys.error().what.find("chmod 600"), std::string::npos);
  }
  EXPECT_TRUE(serve::http::ApiKeys::read(key_file(first_key, 0400)));
  EXPECT_EQ(serve::http::ApiKeys::read(testing::TempDir()).error().code, Errc::usage);
  EXPECT_EQ(serve::http::ApiKeys::read(testing::TempDir() + "none").error().code, Errc::not_found);
}

TEST(ApiKeys, RefusesMalformedFiles) {
  for (const std::string& text :
       {std::string(), std::string("# only a comment\n"), std::string("short\n"),
        "a b " + first_key, "a/b " + first_key, first_key + "\n" + first_key + "\n",
        "a " + first_key + "\na " + second_key, std::string(300, 'a'), first_key + "\x01"}) {
    const auto keys = serve::http::ApiKeys::read(key_file(text));
    ASSERT_FALSE(keys) << quote(text);
    EXPECT_EQ(keys.error().code, Errc::bad_input) << quote(text);
    EXPECT_EQ(keys.error().what.find(first_key), std::string::npos) << "a key in a message";
  }
}

TEST(ApiKeys, AreNeededOnEveryRouteThatIsNotOpen) {
  TestServer test({}, two_keys());
  const serve::http::Router routes = test_routes(test);
  RawClient client(test.port());
  int open = 0;
  for (const serve::http::Route& route : routes.routes()) {
    std::string path = route.path;
    if (path.ends_with('*')) path.back() = 'x';
    client.send(cat(route.method, " ", path, " HTTP/1.1\r\nHost: any.example\r\n\r\n"));
    const auto response = client.response();
    ASSERT_TRUE(response) << path;
    if (route.access == serve::http::Access::open) {
      ++open;
      EXPECT_EQ(response->status, 200) << path;
      continue;
    }
    EXPECT_EQ(response->status, 401) << path;
    EXPECT_EQ(response->headers.at("www-authenticate"), "Bearer");
  }
  EXPECT_EQ(open, 1);
  EXPECT_EQ(test.forbidden, 0);
}

TEST(ApiKeys, AreAcceptedInTheAuthorizationFieldOnly) {
  TestServer test({}, two_keys());
  RawClient client(test.port());
  const auto status = [&](const std::string& request) {
    client.send(request);
    return client.response()->status;
  };
  EXPECT_EQ(status(get("/forbidden", cat("Authorization: Bearer ", first_key, "\r\n"))), 200);
  EXPECT_EQ(status(get("/forbidden", cat("Authorization: Bearer ", second_key, "\r\n"))), 200);
  EXPECT_EQ(status(get("/forbidden", "Authorization: Bearer wrong-wrong-wrong-wrong\r\n")), 401);
  EXPECT_EQ(status(get(cat("/forbidden?api_key=", first_key))), 401);
  EXPECT_EQ(status(get(cat("/forbidden?Authorization=Bearer%20", first_key))), 401);
  EXPECT_EQ(status(get("/forbidden", cat("X-Api-Key: ", first_key, "\r\n"))), 401);
  EXPECT_EQ(status(get("/forbidden", cat("Cookie: key=", first_key, "\r\n"))), 401);
  EXPECT_EQ(status(get("/unknown")), 401) << "unknown paths are not revealed";
  // A body without a key is not read.
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(client.response()->status, 401);
}

TEST(ApiKeys, AuthorizationIsIgnoredWithoutKeys) {
  TestServer test;
  RawClient client(test.port());
  client.send(get("/forbidden", "Authorization: Bearer EMPTY\r\n"));
  EXPECT_EQ(client.response()->status, 200);
}

TEST(Exposure, BeyondLoopbackNeedsKeysAndEncryption) {
  for (const std::string host : {"127.0.0.1", "127.1.2.3", "::1", "localhost"})
    EXPECT_TRUE(serve::http::check_exposure(host, false, false, false)) << host;
  for (const std::string host : {"0.0.0.0", "::", "192.168.0.1", "::ffff:127.0.0.1"}) {
    EXPECT_FALSE(serve::http::check_exposure(host, false, false, false)) << host;
    EXPECT_FALSE(serve::http::check_exposure(host, false, true, false)) << host;
    EXPECT_FALSE(serve::http::check_exposure(host, false, true, true)) << host;
    EXPECT_FALSE(serve::http::check_exposure(host, true, false, false)) << host;
    EXPECT_TRUE(serve::http::check_exposure(host, true, true, false)) << host;
    EXPECT_TRUE(serve::http::check_exposure(host, true, false, true)) << host;
  }
  const auto open = serve::http::Server::start({.host = "0.0.0.0"}, serve::http::Router(),
                                               serve::http::ApiKeys(), nullptr);
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code, Errc::usage);
}

TEST(AccessLog, WritesAnObjectPerRequest) {
  const std::string path = testing::TempDir() + "access.jsonl";
  {
    TestServer test({}, two_keys(), serve::http::AccessLog::open(path).value());
    RawClient client(test.port());
    client.send(post("/echo?secret=1", "12345",
                     cat("X-Request-Id: one\r\nAuthorization: Bearer ", first_key, "\r\n")));
    ASSERT_TRUE(client.response());
    client.send(get("/none", "X-Request-Id: two\r\n"));
    ASSERT_TRUE(client.response());
    client.send("malformed\r\n\r\n");
    ASSERT_TRUE(client.response());
  }
  std::ifstream file(path);
  std::string line;
  std::vector<Json> lines;
  while (std::getline(file, line)) lines.push_back(parse_json(line, path).value());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].find("request_id")->string(), "one");
  EXPECT_EQ(lines[0].find("key")->string(), "alice");
  EXPECT_EQ(lines[0].find("path")->string(), "/echo");
  EXPECT_EQ(lines[0].find("status")->integer(), 200);
  EXPECT_EQ(lines[0].find("request_bytes")->integer(), 5);
  EXPECT_EQ(lines[0].find("response_bytes")->integer(), 5);
  EXPECT_EQ(lines[1].find("status")->integer(), 401);
  EXPECT_TRUE(lines[1].find("key")->is_null());
  EXPECT_EQ(lines[2].find("status")->integer(), 400);
  struct stat info {};
  ::stat(path.c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(read_file(path)->find(first_key), std::string::npos);
}

}  // namespace
}  // namespace troupe::launch::serve::http
