// Server: what a client sees on the wire, limits and deadlines, streams, disconnection and drain.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "tests/launch/http/raw_client.h"
#include "tests/launch/http/test_server.h"

namespace troupe::launch::serve::http {
namespace {

using std::chrono::milliseconds;

TEST(HttpServer, AnswersRequestsOfOneConnectionInOrder) {
  TestServer test;
  RawClient client(test.port());
  for (int i = 0; i < 3; ++i) {
    client.send(post("/echo", cat("body ", i)));
    const auto response = client.response();
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, cat("body ", i));
    EXPECT_EQ(response->headers.at("connection"), "keep-alive");
    EXPECT_TRUE(response->headers.contains("date"));
  }
  std::string pipelined;
  for (int i = 0; i < 200; ++i) pipelined += post("/echo", cat("pipelined ", i));
  client.send(pipelined);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(client.response()->body, cat("pipelined ", i));
}

TEST(HttpServer, AnswersByteByByteAndInChunks) {
  TestServer test;
  RawClient client(test.port());
  const std::string bytes =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0\r\n\r\n";
  for (const char c : bytes) client.send(std::string(1, c));
  EXPECT_EQ(client.response()->body, "abc");
}

TEST(HttpServer, KnowsItsRoutesAndMethods) {
  TestServer test;
  RawClient client(test.port());
  client.send(get("/nothing"));
  auto response = client.response();
  EXPECT_EQ(response->status, 404);
  EXPECT_EQ(parse_json(response->body, "")->find("error")->find("code")->string(), "not_found");
  client.send(post("/health", ""));
  response = client.response();
  EXPECT_EQ(response->status, 405);
  EXPECT_EQ(response->headers.at("allow"), "GET, HEAD, OPTIONS");
  client.send("OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");
  response = client.response();
  EXPECT_EQ(response->status, 204);
  EXPECT_EQ(response->headers.at("allow"), "OPTIONS, POST");
  client.send("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.response()->status, 204);
  client.send("HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  response = client.response(milliseconds(5000), true);
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->headers.at("content-length"), "2");
  client.send(get("/models/org/name"));
  EXPECT_EQ(client.response()->body, "org/name");
  client.send(get("/models/"));
  EXPECT_EQ(client.response()->status, 404);
}

TEST(HttpServer, NamesEveryRequest) {
  TestServer test;
  RawClient client(test.port());
  client.send(get("/health", "X-Request-Id: mine-1\r\n"));
  EXPECT_EQ(client.response()->headers.at("x-request-id"), "mine-1");
  client.send(get("/health", "X-Request-Id: not acceptable\r\n"));
  const std::string first = client.response()->headers.at("x-request-id");
  client.send(get("/health"));
  const std::string second = client.response()->headers.at("x-request-id");
  EXPECT_EQ(first.size(), 20u);
  EXPECT_TRUE(first.starts_with("req-"));
  EXPECT_NE(first, second);
  client.send("nonsense\r\n\r\n");
  EXPECT_TRUE(client.response()->headers.contains("x-request-id"));
}

TEST(HttpServer, ClosesAfterAnErrorOnceTheClientHasTheResponse) {
  TestServer test({.limits = {.body_bytes = 1000}});
  {
    RawClient client(test.port());
    client.send("GET / HTTP/1.1\r\n\r\n" + get("/forbidden"));
    const auto response = client.response();
    EXPECT_EQ(response->status, 400);
    EXPECT_EQ(response->headers.at("connection"), "close");
    EXPECT_EQ(client.rest(milliseconds(5000)), "");
  }
  // A body that is too large is refused before it is read; the client still sends all of it.
  RawClient client(test.port());
  client.send(post("/echo", std::string(1 << 20, 'a')));
  EXPECT_EQ(client.response()->status, 413);
  EXPECT_EQ(client.rest(milliseconds(5000)), "");
  EXPECT_EQ(test.forbidden, 0);
  EXPECT_EQ(test.server->counts().malformed, 2u);
}

TEST(HttpServer, HonoursConnectionCloseAndOldClients) {
  TestServer test;
  RawClient client(test.port());
  client.send(get("/health", "Connection: close\r\n"));
  EXPECT_EQ(client.response()->headers.at("connection"), "close");
  EXPECT_EQ(client.rest(milliseconds(5000)), "");
  RawClient old(test.port());
  old.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.response()->body, "ok");
  EXPECT_EQ(old.rest(milliseconds(5000)), "");
}

TEST(HttpServer, InvitesABodyThatIsAnnounced) {
  TestServer test;
  RawClient client(test.port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Content-Length: 2\r\n\r\n");
  EXPECT_EQ(client.response()->status, 100);
  client.send("ab");
  EXPECT_EQ(client.response()->body, "ab");
  client.send(
      "POST /nothing HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Content-Length: 2\r\n\r\n");
  EXPECT_EQ(client.response()->status, 404);
}

TEST(HttpServer, RefusesTheNameOfAnotherHostOnLoopback) {
  TestServer test;
  RawClient client(test.port());
  client.send("GET /health HTTP/1.1\r\nHost: attacker.example:80\r\n\r\n");
  EXPECT_EQ(client.response()->status, 421);
  for (const std::string host : {"127.0.0.1:80", "LOCALHOST", "[::1]:1"}) {
    client.send(cat("GET /health HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
    EXPECT_EQ(client.response()->status, 200) << host;
  }
}

TEST(HttpServer, EndsSlowRequestsAndIdleConnections) {
  TestServer test({.limits = {.header_time = milliseconds(100),
                              .body_time = milliseconds(100),
                              .first_byte_time = milliseconds(100),
                              .idle_time = milliseconds(100)}});
  RawClient header(test.port()), body(test.port()), idle(test.port());
  header.send("GET / HT");
  body.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc");
  EXPECT_EQ(header.response()->status, 408);
  EXPECT_EQ(body.response()->status, 408);
  EXPECT_EQ(idle.rest(milliseconds(2000)), "");
  // Bytes that arrive one by one do not extend the time.
  RawClient drip(test.port());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  bool ended = false;
  drip.send("GET / HTTP/1.1\r\nX: ");
  while (!ended && std::chrono::steady_clock::now() < until)
    ended = !drip.send("a") || drip.response(milliseconds(10));
  EXPECT_TRUE(ended);
  EXPECT_EQ(test.server->counts().timeouts, 3u);
}

TEST(HttpServer, RefusesConnectionsBeyondTheLimit) {
  TestServer test({.limits = {.connections = 2}});
  RawClient first(test.port()), second(test.port());
  first.send(post("/hold", ""));
  second.send(post("/hold", ""));
  const auto one = test.take_held(), two = test.take_held();
  ASSERT_TRUE(one && two);
  RawClient third(test.port());
  const auto refused = third.response();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503);
  EXPECT_EQ(refused->headers.at("retry-after"), "1");
  one->respond({});
  two->respond({});
  EXPECT_EQ(first.response()->status, 200);
  EXPECT_EQ(second.response()->status, 200);
  EXPECT_EQ(test.server->counts().refused, 1u);
}

TEST(HttpServer, AnswersFromAnotherThread) {
  TestServer test;
  RawClient client(test.port());
  client.send(post("/hold", ""));
  const auto responder = test.take_held();
  ASSERT_TRUE(responder);
  std::thread([responder] { responder->respond({.body = "late"}); }).join();
  EXPECT_EQ(client.response()->body, "late");
  responder->respond({.body = "again"});
  client.send(get("/health"));
  EXPECT_EQ(client.response()->body, "ok");
  EXPECT_EQ(test.disconnects, 0);
}

TEST(HttpServer, AnswersARequestThatItsHandlerDrops) {
  TestServer test;
  RawClient client(test.port());
  client.send(get("/drop"));
  EXPECT_EQ(client.response()->status, 500);
}

TEST(HttpServer, StreamsEvents) {
  TestServer test;
  RawClient client(test.port());
  client.send(get("/stream"));
  auto responder = test.take_held();
  ASSERT_TRUE(responder);
  EXPECT_FALSE(responder->send_event("too early"));
  responder->begin_stream();
  EXPECT_TRUE(responder->send_event("one"));
  ASSERT_TRUE(client.read_until("\r\n\r\nb\r\ndata: one\n\n\r\n", milliseconds(5000)));
  EXPECT_TRUE(responder->send_event("two"));
  responder->end_stream();
  EXPECT_FALSE(responder->send_event("too late"));
  EXPECT_TRUE(client.read_until("data: two\n\n\r\n0\r\n\r\n", milliseconds(5000)));
  client.send(get("/stream"));
  responder = test.take_held();
  responder->begin_stream();
  responder->send_event("whole");
  responder->end_stream();
  const auto response = client.response();
  EXPECT_EQ(response->headers.at("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(response->body, "data: whole\n\n");
}

TEST(HttpServer, AnswersHeadOfAStreamWithoutEvents) {
  TestServer test;
  RawClient client(test.port());
  client.send("HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto responder = test.take_held();
  ASSERT_TRUE(responder);
  responder->begin_stream();
  EXPECT_TRUE(responder->send_event("one"));
  responder->end_stream();
  EXPECT_EQ(client.response(milliseconds(5000), true)->status, 200);
  client.send(get("/health"));
  EXPECT_EQ(client.response()->body, "ok");
}

TEST(HttpServer, CutsAStreamThatItsHandlerDrops) {
  TestServer test;
  RawClient client(test.port());
  client.send(get("/stream"));
  {
    const auto responder = test.take_held();
    responder->begin_stream();
    responder->send_event("one");
  }
  const auto all = client.rest(milliseconds(5000));
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->ends_with("data: one\n\n\r\n")) << *all;
}

TEST(HttpServer, NoticesThatAClientHasDisconnected) {
  TestServer test;
  for (int i = 0; i < 2; ++i) {
    RawClient client(test.port());
    client.send(get("/stream"));
    const auto responder = test.take_held();
    ASSERT_TRUE(responder);
    if (i == 1) responder->begin_stream();
    client.reset();
    EXPECT_TRUE(eventually([&] { return test.disconnects == i + 1; }));
    EXPECT_TRUE(responder->disconnected());
    EXPECT_FALSE(responder->send_event("lost"));
    int called = 0;
    responder->on_disconnect([&] { ++called; });
    EXPECT_EQ(called, 1);
  }
  EXPECT_TRUE(eventually([&] { return test.server->counts().active == 0; }));
}

TEST(HttpServer, EndsAStreamWhoseReaderIsTooSlowAndDelaysNobody) {
  TestServer test({.threads = 1, .limits = {.stream_bytes = 100'000}});
  RawClient slow(test.port(), 4096), other(test.port());
  slow.send(get("/stream"));
  const auto responder = test.take_held();
  ASSERT_TRUE(responder);
  responder->begin_stream();
  const std::string event(1000, 'x');
  int sent = 0;
  while (sent < 100'000 && responder->send_event(event)) {
    if (++sent % 100 != 0) continue;
    other.send(get("/health"));
    ASSERT_EQ(other.response(milliseconds(1000))->body, "ok");
  }
  EXPECT_LT(sent, 20'000);
  EXPECT_TRUE(eventually([&] { return test.disconnects == 1; }));
  EXPECT_EQ(test.server->counts().slow, 1u);
}

TEST(HttpServer, DrainsWhatIsInProgress) {
  TestServer test;
  RawClient idle(test.port()), busy(test.port());
  idle.send(get("/health"));
  EXPECT_EQ(idle.response()->status, 200);
  busy.send(post("/hold", ""));
  const auto responder = test.take_held();
  ASSERT_TRUE(responder);
  auto drained =
      std::async(std::launch::async, [&] { return test.server->drain(milliseconds(5000)); });
  EXPECT_EQ(idle.rest(milliseconds(5000)), "");
  responder->respond({.body = "done"});
  const auto response = busy.response();
  EXPECT_EQ(response->body, "done");
  EXPECT_EQ(response->headers.at("connection"), "close");
  EXPECT_EQ(busy.rest(milliseconds(5000)), "");
  { const RawClient closing = std::move(busy); }
  EXPECT_TRUE(drained.get());
}

TEST(HttpServer, EndsADrainAtItsDeadline) {
  TestServer test;
  RawClient busy(test.port());
  busy.send(post("/hold", ""));
  ASSERT_TRUE(eventually([&] { return test.server->counts().active == 1; }));
  EXPECT_FALSE(test.server->drain(milliseconds(50)));
  EXPECT_EQ(test.disconnects, 1);
  EXPECT_EQ(busy.rest(milliseconds(5000)), "");
}

TEST(HttpServer, ReportsAnAddressThatItCannotUse) {
  TestServer test;
  const auto taken = serve::http::Server::start({.port = test.port()}, serve::http::Router(),
                                                serve::http::ApiKeys(), nullptr);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Errc::io);
  const auto name = serve::http::Server::start({.host = "localhost.example"}, serve::http::Router(),
                                               serve::http::ApiKeys(), nullptr);
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().code, Errc::usage);
}

}  // namespace
}  // namespace troupe::launch::serve::http
