// Requests that a browser sends for pages of other sites, and names of hosts.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "tests/launch/http/raw_client.h"
#include "tests/launch/http/test_server.h"

namespace troupe::launch::serve::http {
namespace {

struct Form {
  const char* fields;
  bool passes;
};

// PORT stands for the server's own.
const std::vector<Form> forms = {
    {"", true},
    {"Sec-Fetch-Site: none\r\n", true},
    {"Sec-Fetch-Site: same-origin\r\n", true},
    {"Sec-Fetch-Site: same-site\r\n", false},
    {"Sec-Fetch-Site: cross-site\r\n", false},
    {"Origin: http://127.0.0.1:PORT\r\n", true},
    {"Origin: http://localhost:PORT\r\n", true},
    {"Origin: http://[::1]:PORT\r\n", true},
    {"Origin: http://named.localhost:PORT\r\n", false},
    {"Origin: http://localhost:1\r\n", false},
    {"Origin: http://localhost\r\n", true},  // the Host field of these requests
    {"Origin: http://evil.example\r\n", false},
    {"Origin: https://evil.example:PORT\r\n", false},
    {"Origin: http://127.0.0.1.evil.example:PORT\r\n", false},
    {"Origin: http://127.0.0.1:PORT.evil.example\r\n", false},
    {"Origin: http://evil.example@127.0.0.1:PORT\r\n", false},
    {"Origin: http://[::1]evil:PORT\r\n", false},
    {"Origin: null\r\n", false},
    {"Origin: \r\n", false},
    {"Origin: http://127.0.0.1:PORT\r\nOrigin: http://evil.example\r\n", false},
    {"Origin: http://127.0.0.1:PORT\r\nSec-Fetch-Site: cross-site\r\n", false},
    {"Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n", false},
};

std::string with_port(const Form& form, int port) {
  std::string text = form.fields;
  for (std::size_t at = text.find("PORT"); at != std::string::npos; at = text.find("PORT"))
    text.replace(at, 4, std::to_string(port));
  return text;
}

TEST(CrossSite, NoEndpointAnswersPagesOfOtherSites) {
  TestServer test;
  const serve::http::Router routes = test_routes(test);
  for (const Form& form : forms)
    for (const serve::http::Route& route : routes.routes()) {
      if (route.path == "/hold" || route.path == "/stream") continue;
      std::string path = route.path;
      if (path.ends_with('*')) path.back() = 'x';
      for (const char* type : {"application/json", "text/plain"}) {
        RawClient client(test.port());
        client.send(cat(route.method, " ", path, " HTTP/1.1\r\nHost: localhost\r\nContent-Type: ",
                        type, "\r\n", with_port(form, test.port()), "Content-Length: 2\r\n\r\n{}"));
        const auto response = client.response();
        ASSERT_TRUE(response) << path;
        EXPECT_EQ(response->status == 403, !form.passes) << form.fields << path;
        if (form.passes) continue;
        EXPECT_NE(response->body.find("\"code\":\"cross_site\""), std::string::npos);
      }
    }
  EXPECT_EQ(test.forbidden, 2 * static_cast<int>(std::ranges::count(forms, true, &Form::passes)));
}

TEST(CrossSite, KeysAnswerForThemselves) {
  const std::string path = testing::TempDir() + "cross_site_keys", key = "0123456789abcdef";
  std::filesystem::remove(path);
  std::ofstream(path) << key;
  ::chmod(path.c_str(), 0600);
  TestServer test({}, serve::http::ApiKeys::read(path).value());
  RawClient client(test.port());
  client.send(get("/health", "Origin: https://app.example\r\n"));
  EXPECT_EQ(client.response()->status, 200);
  client.send(get("/forbidden", "Origin: https://app.example\r\n"));
  EXPECT_EQ(client.response()->status, 401);
}

TEST(CrossSite, TheWholeHostFieldNamesThisHost) {
  for (const char* good : {"localhost", "LocalHost:80", "127.0.0.1", "127.0.0.1:65535", "[::1]",
                           "[::1]:8000", "127.9.9.9:1"})
    EXPECT_TRUE(serve::http::names_loopback(good)) << good;
  for (const char* bad :
       {"", ":80", "[::1]evil", "[::1]evil:80", "[::1", "[::1]:", "[::1]:x", "[127.0.0.1]", "::1",
        "localhost:evil.com:80", "localhost:", "localhost:80x", "localhost:-1", "localhost:65536",
        "localhost.evil.com", "127.0.0.1:80:80", "127.0.0.1:0x50", "127.0.0.1.evil.com:80"})
    EXPECT_FALSE(serve::http::names_loopback(bad)) << bad;
}

TEST(HttpServer, AVersionThatTheClientChoseIsItsError) {
  TestServer test;
  RawClient client(test.port());
  client.send("GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n");
  const auto response = client.response();
  EXPECT_EQ(response->status, 505);
  const Json body = parse_json(response->body, "the answer").value();
  EXPECT_EQ(body.find("error")->find("type")->string(), "invalid_request_error");
}

TEST(AccessLog, IsARegularFile) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "access_log";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder / "victim") << "kept";
  fs::create_symlink("victim", folder / "link");
  fs::create_symlink("nothing", folder / "dangling");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((folder / "read").c_str(), 0600), 0);
  const int reader = ::open((folder / "read").c_str(), O_RDONLY | O_NONBLOCK);
  for (const char* name : {"link", "dangling", "fifo", "read", "."}) {
    const auto log = serve::http::AccessLog::open(folder / name);
    ASSERT_FALSE(log) << name;
    EXPECT_EQ(log.error().code, Errc::io) << name;
    EXPECT_NE(log.error().what.find("--access-log"), std::string::npos) << log.error().what;
  }
  ::close(reader);
  EXPECT_EQ(fs::file_size(folder / "victim"), 4u);
  EXPECT_FALSE(fs::exists(folder / "nothing"));
  EXPECT_TRUE(serve::http::AccessLog::open(folder / "log"));
  EXPECT_TRUE(serve::http::AccessLog::open(folder / "log")) << "appends";
}

}  // namespace
}  // namespace troupe::launch::serve::http
