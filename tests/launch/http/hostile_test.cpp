// More than 2,000 hostile clients while an honest one receives the same bytes as without them.
// Every hostile connection ends, or is answered, within a deadline, and nothing that a request
// smuggles in its body is handled.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/text/text.h"
#include "tests/launch/http/certificate.h"
#include "tests/launch/http/raw_client.h"
#include "tests/launch/http/test_server.h"

namespace troupe::launch::serve::http {
namespace {

using std::chrono::milliseconds;

enum class End { wait, half_close, reset };

struct HostileCase {
  std::string name, bytes;
  End end = End::wait;
  /// The only status that is right; 0: any answer, or none.
  int status = 0;
};

/// No deadline decides what the hostile requests get, also under sanitizers.
serve::http::ServerLimits long_limits() {
  return {.header_time = milliseconds(30'000), .body_time = milliseconds(30'000)};
}

/// Requests whose end two servers could see at different places. Each contains a second request.
void add_smuggling(std::vector<HostileCase>& cases) {
  const std::string head = "POST /echo HTTP/1.1\r\nHost: localhost\r\n";
  const std::string hidden = "GET /forbidden HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::vector<std::string> lengths = {
      "Content-Length: 0",  "Content-Length: 5",    "Content-Length: 5, 5", "Content-Length: 05, 6",
      "Content-Length: +5", "Content-Length: 5\t0", "Content-Length: 5e0",  "Content-Length:\t0x5",
  };
  const std::vector<std::string> encodings = {
      "Transfer-Encoding: chunked",
      "Transfer-Encoding:chunked",
      "Transfer-Encoding: \tchunked",
      "Transfer-Encoding: xchunked",
      "Transfer-Encoding: chunked, identity",
      "Transfer-Encoding: identity, chunked",
      "Transfer-Encoding: \"chunked\"",
      "Transfer-Encoding: chunked;q=1",
      "Transfer-Encoding : chunked",
      "Transfer-Encoding\t: chunked",
      "transfer-encoding: CHUNKED",
      "X: a\r\n Transfer-Encoding: chunked",
      "X: a\nTransfer-Encoding: chunked",
      "X: a\rTransfer-Encoding: chunked",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
      "Transfer-Encoding: gzip",
  };
  for (const std::string& length : lengths)
    for (const std::string& encoding : encodings) {
      const std::string body = "\r\n\r\n0\r\n\r\n" + hidden;
      cases.push_back(
          {"length, encoding", cat(head, length, "\r\n", encoding, body), End::wait, 400});
      cases.push_back(
          {"encoding, length", cat(head, encoding, "\r\n", length, body), End::wait, 400});
    }
  for (const std::string& first : lengths)
    for (const std::string& second : lengths)
      cases.push_back(
          {"two lengths", cat(head, first, "\r\n", second, "\r\n\r\n", hidden), End::wait, 400});
  for (const std::string chunk :
       {"5\nhello\r\n", "5\r\nhello\n", "5 \nhello\r\n", "-5\r\nhello\r\n", "0x5\r\nhello\r\n",
        "5;\nhello\r\n", "5\r\nhello world\r\n", "fffffffffffffffff\r\n", "\r\n", "G\r\n"})
    cases.push_back({"chunk",
                     cat(head, "Transfer-Encoding: chunked\r\n\r\n", chunk, "0\r\n\r\n", hidden),
                     End::wait, 400});
}

void add_oversized(std::vector<HostileCase>& cases) {
  const std::string head = "POST /json HTTP/1.1\r\nHost: localhost\r\n";
  for (int i = 0; i < 40; ++i) {
    const std::string fill(20'000 + 5'000 * i, static_cast<char>('a' + i % 26));
    cases.push_back({"long field", cat(head, "X: ", fill, "\r\n\r\n"), End::wait, 431});
    cases.push_back({"endless field", cat(head, "X: ", fill), End::wait, 431});
    cases.push_back({"long name", cat(head, fill, ": a\r\n\r\n"), End::half_close, 0});
    cases.push_back({"long target", cat("GET /", fill, " HTTP/1.1\r\n\r\n"), End::wait, 431});
    cases.push_back({"long chunk line", cat(head, "Transfer-Encoding: chunked\r\n\r\n5;", fill),
                     End::half_close, 0});
    std::string fields = head;
    for (int k = 0; k < 70 + i; ++k) fields += cat("X", k, ": a\r\n");
    cases.push_back({"many fields", fields + "\r\n", End::wait, 431});
    cases.push_back({"large body", cat(head, "Content-Length: ", 3'000'000 + i, "\r\n\r\n", fill),
                     End::wait, 413});
  }
}

void add_bodies(std::vector<HostileCase>& cases, std::mt19937& random) {
  const auto add = [&](const char* name, const std::string& body, int status) {
    cases.push_back({name, post("/json", body), status == 0 ? End::half_close : End::wait, status});
  };
  for (int i = 0; i < 100; ++i) {
    const std::size_t depth = 33 + static_cast<std::size_t>(i) * 1000;
    add("deep arrays", std::string(depth, '['), 400);
    std::string objects;
    for (std::size_t k = 0; k < depth; ++k) objects += "{\"a\":";
    add("deep objects", objects, 400);
    std::string bytes(1 + random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    add("random bytes", "\"" + bytes, 400);
    add("not UTF-8", "{\"a\":\"\xff\xfe" + std::to_string(i) + "\"}", 400);
    add("large number",
        "[" + std::string(static_cast<std::size_t>(i) + 1, '9') + "e" +
            std::string(static_cast<std::size_t>(i) + 4, '9') + "]",
        0);
    add("negative number", "[-" + std::string(static_cast<std::size_t>(i) + 1, '9') + "]", 0);
    add("repeated key", "{\"a\":1,\"a\":" + std::to_string(i) + "}", 400);
  }
}

/// A valid exchange with bytes changed, dropped, repeated or cut off.
std::string mutated(std::mt19937& random) {
  std::string bytes = random() % 2 == 0
                          ? post("/json", "{\"prompt\":[1,2,3]}", "Accept: */*\r\n")
                          : "POST /json HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
                            "chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n";
  const std::vector<std::string> tokens = {"\r\n",
                                           "\n",
                                           "\r",
                                           " ",
                                           "\t",
                                           ":",
                                           "\0",
                                           "\xff",
                                           "-1",
                                           "Host: b\r\n",
                                           "Content-Length: 1\r\n",
                                           "chunked",
                                           "0"};
  const int changes = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < changes; ++i) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.insert(at, tokens[random() % tokens.size()]);
        break;
      case 2:
        bytes.erase(at, 1 + random() % 5);
        break;
      default:
        bytes.insert(at, bytes.substr(at, 1 + random() % 20));
        break;
    }
    if (bytes.empty()) bytes = "\r\n";
  }
  if (random() % 4 == 0) bytes.resize(1 + random() % bytes.size());
  return bytes;
}

std::vector<HostileCase> hostile_cases() {
  std::mt19937 random(7);
  std::vector<HostileCase> cases;
  add_smuggling(cases);
  add_oversized(cases);
  add_bodies(cases, random);
  for (int i = 0; i < 1200; ++i) {
    const End end = i % 3 == 0 ? End::reset : End::half_close;
    cases.push_back({"mutated", mutated(random), end, 0});
  }
  return cases;
}

/// What is wrong with the server's reaction, or "".
std::string react(int port, const HostileCase& one) {
  RawClient client(port);
  client.send(one.bytes);
  if (one.end == End::reset) {
    client.reset();
    return "";
  }
  if (one.end == End::half_close) client.half_close();
  if (one.status != 0) {
    const auto response = client.response(milliseconds(20'000));
    if (!response) return "no response";
    if (response->status != one.status) return cat("status ", response->status);
    return "";
  }
  // Whatever is answered, the connection ends.
  return client.rest(milliseconds(20'000)) ? "" : "the connection does not end";
}

/// Sends the same request until `stop`; counts the exchanges, and those with another result.
struct Honest {
  std::string expected;
  int exchanges = 0, different = 0;
  void run(int port, const std::atomic<bool>& stop) {
    RawClient client(port);
    const std::string request = post("/json", "{\"prompt\":[1,2,3],\"seed\":7}");
    while (!stop) {
      client.send(request);
      const auto response = client.response(milliseconds(20'000));
      ++exchanges;
      if (!response || response->status != 200) {
        ++different;
        return;
      }
      if (expected.empty()) expected = response->body;
      if (response->body != expected) ++different;
    }
  }
};

TEST(HttpHostile, AnHonestClientIsServedAmongHostileOnes) {
  const std::vector<HostileCase> cases = hostile_cases();
  ASSERT_GE(cases.size(), 2000u);
  TestServer test({.limits = long_limits()});
  std::atomic<bool> stop = false;
  std::atomic<std::size_t> next = 0;
  Honest honest;
  std::thread honest_thread([&] { honest.run(test.port(), stop); });
  std::vector<std::thread> attackers;
  std::vector<std::vector<std::string>> problems(32);
  for (std::vector<std::string>& found : problems)
    attackers.emplace_back([&] {
      for (std::size_t i = next++; i < cases.size(); i = next++)
        if (const std::string problem = react(test.port(), cases[i]); !problem.empty())
          found.push_back(cat(cases[i].name, ": ", problem, ": ", quote(cases[i].bytes, 200)));
    });
  for (std::thread& attacker : attackers) attacker.join();
  stop = true;
  honest_thread.join();
  for (const auto& found : problems)
    for (const std::string& problem : found) ADD_FAILURE() << problem;
  EXPECT_EQ(test.forbidden, 0);
  EXPECT_EQ(honest.different, 0);
  EXPECT_GT(honest.exchanges, 10);
  EXPECT_EQ(honest.expected, "{\"prompt\":[1,2,3],\"seed\":7}");
  EXPECT_TRUE(eventually([&] { return test.server->counts().active == 0; }));
  EXPECT_TRUE(eventually([&] { return test.server->counts().open == 0; }));
}

TEST(HttpHostile, GarbageInsteadOfTlsEnds) {
  const Certificate certificate = make_certificate("hostile");
  TestServer test({.tls_cert = certificate.cert,
                   .tls_key = certificate.key,
                   .limits = {.header_time = milliseconds(400)}});
  std::mt19937 random(8);
  std::vector<std::thread> attackers;
  std::atomic<int> open = 0;
  for (int i = 0; i < 16; ++i) {
    const auto seed = random();
    attackers.emplace_back([&, seed] {
      std::mt19937 own(static_cast<std::mt19937::result_type>(seed));
      for (int k = 0; k < 8; ++k) {
        std::string bytes = "\x16\x03\x01";
        bytes.resize(5 + own() % 400);
        for (std::size_t at = own() % 6; at < bytes.size(); ++at)
          bytes[at] = static_cast<char>(own());
        RawClient client(test.port());
        client.send(bytes);
        if (k % 2 == 0) client.half_close();
        if (!client.rest(milliseconds(5000))) ++open;
      }
    });
  }
  for (std::thread& attacker : attackers) attacker.join();
  EXPECT_EQ(open, 0);
  EXPECT_TRUE(eventually([&] { return test.server->counts().open == 0; }));
}

}  // namespace
}  // namespace troupe::launch::serve::http
